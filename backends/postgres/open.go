package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
)

func init() {
	backends.Register("postgres", open)
	backends.Register("postgresql", open)
}

// patience bounds opening when the caller sets no deadline, and the requests of
// a Watch.
const patience = 10 * time.Second

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Table is the name of the table, or schema.table; "elector" by default.
	Table string

	// Create makes New create a missing table. Without it a missing table is
	// ErrMisconfigured: a URL with a wrong host, database or schema would otherwise
	// have a table of its own, and a second leader.
	Create bool

	// NoListen switches off the listening connection, which a transaction
	// pooler cannot carry, and with it Watch. The handle then sends no notification
	// either: processes that listen find its changes by reading.
	NoListen bool

	// ReadOnly makes a handle that only reads and creates nothing: see
	// [backends.OpenReadOnly]. It needs select on the table, and works on a hot
	// standby, which may be behind.
	ReadOnly bool
}

// New returns a backend on your pool, which Close leaves open. Unless NoListen is
// set, Watches use one more connection, made from the pool's configuration.
// options may be nil. New returns ErrOptions of package backends for a pool or options
// that it cannot use.
//
// New blocks until it has checked the table, at most 10 s if ctx has no
// deadline. It returns the errors of a [backends.Opener].
//
// A renewal waits for a free connection of the pool, as your own statements do: if they keep
// all connections for longer than a lease, it is lost. Give the elector a pool of its own,
// of two connections, unless that cannot be. [pgxpool.Pool.Config] copies the settings of
// your pool.
//
// The pool must lead to a server that takes writes, see target_session_attrs; a
// read on another server fails. The pool also needs [OnNotice]. A ShouldPing
// that always returns false saves a request for each renewal.
func New(ctx context.Context, pool *pgxpool.Pool, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of postgres.New", backends.ErrOptions)
	if pool == nil {
		return nil, fmt.Errorf("%w: the pool is nil; make one with pgxpool.New", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	if _, err := parseTable(cmp.Or(options.Table, "elector")); err != nil {
		return nil, fmt.Errorf("%w: Table is %q, not a name or schema.name", errOptions, options.Table)
	}
	c := pool.Config().ConnConfig
	store := &url.URL{Scheme: "postgres", Host: net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), Path: "/" + c.Database}
	return connect(ctx, pool, false, store.String(), *options)
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	config, options, err := parse(u)
	if err != nil {
		return nil, err
	}
	// This context does not end the pool; it only makes idle connections.
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w: %w", backends.Redact(u), backends.ErrURL, withoutConfig(err))
	}
	b, err := connect(ctx, pool, true, backends.Redact(u), options)
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
}

func connect(ctx context.Context, pool *pgxpool.Pool, ownPool bool, store string, o Options) (*Backend, error) {
	t, err := parseTable(cmp.Or(o.Table, "elector"))
	if err != nil {
		return nil, err
	}
	b := newBackend(pool, ownPool, store, t)
	b.noListen = o.NoListen
	b.base.SetReadOnly(o.ReadOnly)
	if err := b.base.Open(ctx, patience, func(ctx context.Context) error {
		if err := b.recognize(ctx); err != nil {
			return err
		}
		return b.prepare(ctx, o.Create && !o.ReadOnly)
	}); err != nil {
		b.Close()
		return nil, err
	}
	// Now that the table is found, the store's name shows it.
	b.base = backends.NewBase(store+"?table="+strings.Join(b.table, "."), b.classify)
	b.base.SetReadOnly(o.ReadOnly)
	return b, nil
}

// passed are the parameters that the client library gets.
var passed = []string{"host", "port", "dbname", "user", "password", "passfile", "service", "servicefile",
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslsni", "sslnegotiation", "krbspn", "krbsrvname",
	"connect_timeout", "application_name", "search_path", "options",
	"pool_max_conns", "pool_min_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time"}

func parse(u *url.URL) (*pgxpool.Config, Options, error) {
	if storeurl.Misread(u) {
		return nil, Options{}, fmt.Errorf("%w: it is not of the form postgres://user:password@host:port/database (not shown, it may hold a password); percent-encode special characters, such as @ # ? /, in user, password and parameters", backends.ErrURL)
	}
	p := backends.NewParameters(u)
	options := Options{Table: p.String("table", "elector"), Create: p.Bool("create", false), NoListen: !p.Bool("listen", true), ReadOnly: p.Bool("readonly", false)}
	// By default the pool grows with the machine's processors, but the server has
	// one limit for all machines.
	attrs := "read-write"
	if options.ReadOnly {
		attrs = "any"
	}
	forward := url.Values{"target_session_attrs": {attrs}, "pool_max_conns": {"4"}}
	for _, key := range passed {
		if v := p.String(key, ""); v != "" {
			forward.Set(key, v)
		}
	}
	session := p.String("target_session_attrs", attrs)
	if err := p.Done(); err != nil {
		return nil, options, err
	}
	if session != "read-write" && session != "primary" && !options.ReadOnly {
		return nil, options, fmt.Errorf("%w: target_session_attrs must be read-write: elections need a server that takes writes", backends.ErrURL)
	}
	forward.Set("target_session_attrs", session)
	if _, err := parseTable(options.Table); err != nil {
		return nil, options, err
	}

	v := *u
	v.RawQuery = strings.ReplaceAll(forward.Encode(), "+", "%20") // libpq does not take a '+' for a space
	if v.Path == "" {
		v.Path = "/" // without it, and without a host, the URL would lose its slashes
	}
	config, err := configure(v.String(), options.ReadOnly)
	if err != nil {
		return nil, options, fmt.Errorf("%w %s: a parameter, or an environment variable of libpq, is not valid: %w", backends.ErrURL, backends.Redact(u), withoutConfig(err))
	}
	// The server's refusals end a connection, and not its age: a new one may not be had.
	if !forward.Has("pool_max_conn_lifetime") {
		config.MaxConnLifetime = math.MaxInt64 / 2
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		now, err := configure(v.String(), options.ReadOnly) // with what its files hold now
		if err != nil {
			return fmt.Errorf("a file that the URL names, or a variable of libpq, cannot be used now: %w", withoutConfig(err))
		}
		if to := now.ConnConfig; !slices.Equal(places(c), places(to)) {
			return fmt.Errorf("%w: a service file that the URL names, or a variable of libpq, names another server or database now: two processes might use two; restart all to use that", backends.ErrMisconfigured)
		}
		*c = *now.ConnConfig
		return nil
	}
	return config, options, nil
}

// places are the databases of a configuration. There is one for each host, with TLS and
// without.
func places(c *pgx.ConnConfig) []string {
	all := []string{fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)}
	for _, f := range c.Fallbacks {
		all = append(all, fmt.Sprintf("%s:%d", f.Host, f.Port))
	}
	return all
}

// configure parses a URL that the client library takes, and reads the files that it names.
func configure(url string, readOnly bool) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 { // a host that is gone must leave time for the next one
		c.ConnectTimeout = 5 * time.Second
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	if !readOnly {
		c.ValidateConnect = takesWrites
	}
	c.OnNotice = OnNotice
	c.RuntimeParams["client_encoding"] = "UTF8"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "elector"
	}
	// A ping before each renewal would double the requests; query deals with dead
	// connections.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return config, nil
}

// takesWrites is target_session_attrs=read-write, with an error of its own.
func takesWrites(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, "show transaction_read_only").ReadAll()
	if err != nil {
		return err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != "off" {
		return errReadOnly
	}
	return nil
}

// A table is its name, or schema and name.
type table []string

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func parseTable(s string) (table, error) {
	t := table(strings.Split(s, "."))
	for _, part := range t {
		if len(t) > 2 || !identifier.MatchString(part) {
			return nil, fmt.Errorf("%w: table is not a name, or schema.name, of up to 63 ASCII letters, digits and underscores each", backends.ErrURL)
		}
	}
	return t, nil
}

func (t table) quoted() string { return pgx.Identifier(t).Sanitize() }

// channel is the channel of NOTIFY and LISTEN. It leaves out the schema, because
// its length is limited. Tables of one name in two schemas wake each other's
// Watches, which read and find nothing new.
func (t table) channel() string { return t[len(t)-1] }

// columns define the table. Collation C keeps the key's order, and so its
// uniqueness, from changing with the operating system. ttl and renew_every are
// in nanoseconds. Tables from before there were extensions have no ext; the
// default is for writers without extensions.
var columns = []string{`name text collate "C" primary key`, "schema integer not null", "holder text not null", "token bigint not null",
	"ttl bigint not null", "renew_every bigint not null", "attempt text not null", "value text not null", "ext text not null default ''"}

// createSQL leaves half of each page empty: see the package comment. The index on
// name and token is for guards.
func (t table) createSQL() string {
	return "create table " + t.quoted() + " (" + strings.Join(columns, ", ") + ", unique (name, token)) with (fillfactor = 50)"
}

// indexSQL is for tables from before there were guards.
func (t table) indexSQL() string {
	return "create unique index concurrently on " + t.quoted() + " (name, token)"
}

// grantSQL gives the role the rights that this handle needs.
func (b *Backend) grantSQL() string {
	t, role, rights := b.table, pgx.Identifier{b.role}.Sanitize(), "select, insert, update"
	if b.base.ReadOnly() {
		rights = "select"
	}
	sql := "grant " + rights + " on " + t.quoted() + " to " + role
	if len(t) == 2 {
		sql = "grant usage on schema " + pgx.Identifier{t[0]}.Sanitize() + " to " + role + "; " + sql
	}
	return sql
}

// inspect describes the session and the table, which it finds along the
// search_path if it has no schema. Without a table, found is empty.
const inspect = `select current_setting('transaction_read_only'), current_user::text, coalesce(current_schema(), '')::text,
	coalesce(n.nspname, '')::text as found, coalesce(c.relkind::text || c.relpersistence::text, ''), coalesce(row_security_active(c.oid), false),
	coalesce(has_table_privilege(c.oid, 'select'), false),
	coalesce(has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update'), false),
	array(select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute
		where attrelid = c.oid and attnum > 0 and not attisdropped),
	'name' = any(u.keys), 'name,token' = any(u.keys)
from (select to_regclass($1) as oid) as r
	left join pg_class c on c.oid = r.oid left join pg_namespace n on n.oid = c.relnamespace
	left join lateral (select array(select (select string_agg(a.attname, ',' order by a.attname)
			from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any(i.indkey[0:i.indnkeyatts - 1]))
		from pg_index i where i.indrelid = c.oid
		and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null and i.indexprs is null) as keys) as u on true`

// prepare makes sure that the server takes writes, and that the table exists,
// has our columns, and is open to us. It creates a missing table if it may. A handle that
// only reads needs less.
func (b *Backend) prepare(ctx context.Context, create bool) error {
	if b.like != "" {
		return b.preparePlain(ctx, create)
	}
	var readOnly, current, found, kind string
	var secured, reads, writes, unique bool
	var present []string
	_, err := b.queryRow(ctx, inspect, []any{b.table.quoted()}, &readOnly, &b.role, &current, &found, &kind, &secured, &reads, &writes, &present, &unique, &b.guarded)
	only := b.base.ReadOnly()
	switch {
	case err != nil:
		return err
	case readOnly != "off" && !only:
		return errReadOnly
	case found == "" && only:
		return b.unused()
	case found == "":
		if len(b.table) == 1 && current != "" {
			b.table = table{current, b.table[0]}
		}
		return b.create(ctx, create)
	}
	// From here on it is this table, whatever the search_path of a session is.
	b.table = table{found, b.table.channel()}
	if readOnly != "off" { // a standby
		b.noListen = true
	}
	switch {
	case only && b.table.lacks(present) != "":
		return b.unfit("it has no column %s", b.table.lacks(present))
	case only && secured:
		return b.unfit("row-level security may hide rows from role %s: use a table without it", b.role)
	case only && !reads:
		return fmt.Errorf("%w: role %s may not read the table; an administrator can run: %s", backends.ErrDenied, b.role, b.grantSQL())
	case only:
	case kind == "ru":
		return b.unfit("it is UNLOGGED and would be empty after a crash: run alter table %s set logged", b.table.quoted())
	case kind != "rp":
		return b.unfit("it is not an ordinary, permanent table")
	case b.table.lacks(present) != "":
		return b.unfit("it has no column %s", b.table.lacks(present))
	case !unique:
		return b.unfit("its column name has no unique index: run alter table %s add primary key (name)", b.table.quoted())
	case secured:
		return b.unfit("row-level security may hide rows from role %s: use a table without it", b.role)
	case !reads || !writes:
		return fmt.Errorf("%w: role %s may not use the table; an administrator can run: %s", backends.ErrDenied, b.role, b.grantSQL())
	}
	return nil
}

// lacks returns the first column that is not among those present, and what to do
// about it, or "".
func (t table) lacks(present []string) string {
	for _, definition := range columns {
		column := strings.Join(strings.Fields(definition)[:2], " ")
		if slices.Contains(present, column) {
			continue
		}
		if column == "ext text" && !slices.ContainsFunc(present, func(c string) bool { return strings.HasPrefix(c, "ext ") }) {
			return "ext: run alter table " + t.quoted() + " add column " + definition
		}
		return column + ", only " + strings.Join(present, ", ")
	}
	return ""
}

func (b *Backend) create(ctx context.Context, allowed bool) error {
	sql := b.table.createSQL()
	if b.like != "" {
		sql = b.table.plainCreateSQL()
	}
	setup := sql + "; " + b.grantSQL()
	if !allowed {
		return fmt.Errorf("%w: there is no table %s in database %q; if that is the right place, create=true in the URL, or Create in the options of New, creates it, or an administrator can run: %s", backends.ErrMisconfigured, b.table.quoted(), b.database, setup)
	}
	_, err := b.queryRow(ctx, sql, nil)
	switch code(err) {
	case "42501", "3F000":
		return fmt.Errorf("%w: there is no table %s in database %q, and role %s may not create it; an administrator can run: %s: %w",
			backends.ErrMisconfigured, b.table.quoted(), b.database, b.role, setup, err)
	case "23505", "42P07", "42710": // another process has created it meanwhile
		return b.prepare(ctx, false)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return b.base.Explain(ctx, "creating the table", err)
	}
	slog.Info("elector: created the table, as the first process of a new store does; if there were elections here before, their table was renamed or dropped: restore it before you go on",
		"table", b.table.quoted(), "store", b.base.Store())
	return b.prepare(ctx, false)
}

// unused is the error of a handle that only reads and finds no table.
func (b *Backend) unused() error {
	return fmt.Errorf("%w: role %s finds no table %s in database %s, so no election has ever used it; check the database, the schema (the role needs usage on it, and without one in the parameter table it is in the search_path) and the parameter table of the URL",
		backends.ErrMisconfigured, b.role, b.table.quoted(), b.database)
}

func (b *Backend) unfit(format string, args ...any) error {
	return fmt.Errorf("%w: table %s cannot be used: %s", backends.ErrMisconfigured, b.table.quoted(), fmt.Sprintf(format, args...))
}
