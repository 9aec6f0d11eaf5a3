package postgres

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
)

func init() {
	backends.Register("postgres", open)
	backends.Register("postgresql", open)
}

// patience bounds what the caller set no deadline for: opening, and the
// requests of a Watch.
const patience = 10 * time.Second

// Options are New's. The zero value means the defaults.
type Options struct {
	// Table is the name of the table, or schema.table; "elector" by default.
	Table string

	// NoCreate makes a missing table ErrMisconfigured instead of creating it.
	NoCreate bool

	// NoListen does without the listening connection, which a transaction
	// pooler cannot carry. The backend is then no [backends.Watcher].
	NoListen bool
}

// New returns a backend on a pool of yours, which Close leaves open. The
// backend is a [backends.Watcher] unless options say NoListen; its listening
// connection is made from the pool's configuration, apart from the pool.
// options may be nil.
//
// New blocks until the server has answered and the table is known to fit, at
// most 10 s if ctx has no deadline. It returns the errors of a
// [backends.Opener].
//
// The pool must lead to a server that takes writes, see target_session_attrs;
// a read that meets another one fails. See [OnNotice] for what else it needs.
// A ShouldPing that always returns false saves a request for each renewal.
func New(ctx context.Context, pool *pgxpool.Pool, options *Options) (backends.Backend, error) {
	if options == nil {
		options = &Options{}
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
	// The pool is not ended by this context; it only makes idle connections.
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w: %w", backends.Redact(u), backends.ErrURL, withoutConfig(err))
	}
	b, err := connect(ctx, pool, true, backends.Redact(u), options)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return b, nil
}

func connect(ctx context.Context, pool *pgxpool.Pool, ownPool bool, store string, options Options) (backends.Backend, error) {
	if options.Table == "" {
		options.Table = "elector"
	}
	t, err := parseTable(options.Table)
	if err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	c := pool.Config().ConnConfig
	b := &Backend{pool: pool, ownPool: ownPool, store: store, table: t, role: c.User, database: c.Database}
	b.life, b.end = context.WithCancel(context.Background())
	if err := b.prepare(ctx, !options.NoCreate); err != nil {
		b.end()
		return nil, fmt.Errorf("opening %s: %w", store, err)
	}
	b.store += "?table=" + strings.Join(b.table, ".")
	if options.NoListen {
		return b, nil
	}
	return &watcher{Backend: b}, nil
}

// passed are the parameters that go to the client library.
var passed = []string{"host", "port", "dbname", "user", "password", "passfile", "service", "servicefile",
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslsni", "sslnegotiation", "krbspn", "krbsrvname",
	"connect_timeout", "application_name", "search_path", "options",
	"pool_max_conns", "pool_min_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time"}

func parse(u *url.URL) (*pgxpool.Config, Options, error) {
	if err := misread(u); err != nil {
		return nil, Options{}, err
	}
	p := backends.NewParameters(u)
	options := Options{Table: p.String("table", "elector"), NoCreate: !p.Bool("create", true), NoListen: !p.Bool("listen", true)}
	// The library's pool grows with the machine's processors, and the server
	// has one limit for all machines.
	forward := url.Values{"target_session_attrs": {"read-write"}, "pool_max_conns": {"4"}}
	for _, key := range passed {
		if v := p.String(key, ""); v != "" {
			forward.Set(key, v)
		}
	}
	session := p.String("target_session_attrs", "read-write")
	if err := p.Done(); err != nil {
		return nil, options, err
	}
	if session != "read-write" && session != "primary" {
		return nil, options, fmt.Errorf("%w: target_session_attrs must be read-write: elections need a server that takes writes", backends.ErrURL)
	}
	if _, err := parseTable(options.Table); err != nil {
		return nil, options, err
	}

	v := *u
	v.RawQuery = forward.Encode()
	if v.Path == "" {
		v.Path = "/" // without it, and without a host, the URL would lose its slashes
	}
	config, err := pgxpool.ParseConfig(v.String())
	if err != nil {
		return nil, options, fmt.Errorf("%w %s: a parameter, or an environment variable of libpq, is not valid: %w", backends.ErrURL, backends.Redact(u), withoutConfig(err))
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 { // a host that is gone must leave time for the next one
		c.ConnectTimeout = 5 * time.Second
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.ValidateConnect = takesWrites
	c.OnNotice = OnNotice
	c.RuntimeParams["client_encoding"] = "UTF8"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "elector"
	}
	// A ping before each renewal would double the requests; see queryRow for
	// what is done about dead connections.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return config, options, nil
}

// misread refuses URLs in which a part of a password with special characters
// was read as something else, and would be shown.
func misread(u *url.URL) error {
	if u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || u.User == nil && strings.Contains(u.RawQuery, "@") {
		return fmt.Errorf("%w: it is not of the form postgres://user:password@host:port/database (not shown, it may hold a password); percent-encode special characters, @ # ? / say, in user, password and parameters", backends.ErrURL)
	}
	return nil
}

// takesWrites is target_session_attrs=read-write, with an error that can be
// told from others.
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
