package postgres

import (
	"cmp"
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

	// NoCreate makes New return ErrMisconfigured if the table is missing,
	// instead of creating it.
	NoCreate bool

	// NoListen switches off the listening connection, which a transaction
	// pooler cannot carry, and with it Watch.
	NoListen bool
}

// New returns a backend on your pool, which Close leaves open. Unless NoListen is
// set, Watches use one more connection, made from the pool's configuration.
// options may be nil.
//
// New blocks until it has checked the table, at most 10 s if ctx has no
// deadline. It returns the errors of a [backends.Opener].
//
// The pool must lead to a server that takes writes, see target_session_attrs; a
// read on another server fails. The pool also needs [OnNotice]. A ShouldPing
// that always returns false saves a request for each renewal.
func New(ctx context.Context, pool *pgxpool.Pool, options *Options) (*Backend, error) {
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
	if err := b.handle.Open(ctx, patience, func(ctx context.Context) error { return b.prepare(ctx, !o.NoCreate) }); err != nil {
		b.Close()
		return nil, err
	}
	// Now that the table is found, the store's name shows it.
	b.handle = backends.NewBase(store+"?table="+strings.Join(b.table, "."), b.classify)
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
	options := Options{Table: p.String("table", "elector"), NoCreate: !p.Bool("create", true), NoListen: !p.Bool("listen", true)}
	// By default the pool grows with the machine's processors, but the server has
	// one limit for all machines.
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
	v.RawQuery = strings.ReplaceAll(forward.Encode(), "+", "%20") // libpq does not take a '+' for a space
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
	// A ping before each renewal would double the requests; query deals with dead
	// connections.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return config, options, nil
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
