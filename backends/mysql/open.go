package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() {
	backends.Register("mysql", open)
	backends.Register("mysqls", open)
}

// patience bounds opening when the caller sets no deadline.
const patience = 10 * time.Second

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Table is the name of the table, or database.table; "elector" by default.
	Table string

	// Create makes New create a missing table. Without it a missing table is
	// ErrMisconfigured.
	Create bool

	// OneNode allows a server of a Galera cluster, or of a group with several
	// primaries. All processes must then write to the same server: see the
	// package comment.
	OneNode bool

	// AllowAsync goes on while a server's semi-synchronous replication has
	// fallen back to asynchronous: see the package comment.
	AllowAsync bool

	// ReadOnly makes a handle that only reads and creates nothing: see
	// [backends.OpenReadOnly]. It needs select on the table, and works on a replica,
	// which may be behind.
	ReadOnly bool
}

// New returns a backend that connects as the configuration of the driver says, such
// as one of gomysql.ParseDSN. It makes connections of its own, whose settings no other
// code changes, and at most 4. options may be nil. New returns ErrOptions of package
// backends for a configuration or options that it cannot use.
//
// New takes a configuration, and not a [sql.DB]: it sets the session of each connection
// (autocommit, isolation, the wait for locks) and checks its server before a statement
// uses it, and a DB that exists allows neither.
//
// New sets in a copy of the configuration what this package relies on: among others it
// switches MultiStatements and RejectReadOnly off. It returns ErrMisconfigured for one
// that switches autocommit off.
//
// New blocks until it has checked the server and the table, at most 10 s if ctx has
// no deadline. It returns the errors of a [backends.Opener].
func New(ctx context.Context, config *gomysql.Config, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of mysql.New", backends.ErrOptions)
	if config == nil {
		return nil, fmt.Errorf("%w: the configuration is nil; make one with mysql.ParseDSN of the driver", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	switch t, err := parseTable(cmp.Or(options.Table, "elector")); {
	case err != nil:
		return nil, fmt.Errorf("%w: Table is %q, not a name or database.table", errOptions, options.Table)
	case len(t) == 1 && config.DBName == "":
		return nil, fmt.Errorf("%w: no database is named; set DBName in the configuration, or Table to database.table", errOptions)
	}
	for name, value := range config.Params {
		if strings.EqualFold(strings.TrimSpace(name), "autocommit") && !on(strings.Trim(value, `'" `)) {
			return nil, errAutocommit
		}
	}
	store := &url.URL{Scheme: "mysql", Host: config.Addr, Path: "/" + config.DBName}
	return connect(ctx, []*gomysql.Config{config.Clone()}, store.String(), *options)
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	configs, options, err := parse(ctx, u)
	if err != nil {
		return nil, err
	}
	b, err := connect(ctx, configs, backends.Redact(u), options)
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
}

func connect(ctx context.Context, configs []*gomysql.Config, store string, o Options) (*Backend, error) {
	t, err := parseTable(cmp.Or(o.Table, "elector"))
	if err != nil {
		return nil, err
	}
	if len(t) == 1 {
		t = table{configs[0].DBName, t[0]}
	}
	if t[0] == "" {
		return nil, fmt.Errorf("%w: it names no database; write mysql://host:3306/database, or table=database.table", backends.ErrURL)
	}
	b := &Backend{table: t, user: configs[0].User, options: o, exposed: slices.ContainsFunc(configs, exposed)}
	b.base = backends.NewBase(store+"?table="+strings.Join(t, "."), b.classify)
	b.base.SetReadOnly(o.ReadOnly)
	var servers []driver.Connector
	for _, c := range configs {
		server, err := serverOf(c)
		if err != nil {
			return nil, b.base.Explain(ctx, "opening "+b.base.Store(), fmt.Errorf("%w: %w", backends.ErrURL, err))
		}
		servers = append(servers, server)
	}
	b.connector = newConnector(b, servers...)
	b.db = sql.OpenDB(b.connector)
	b.db.SetMaxOpenConns(maxConns)
	b.db.SetMaxIdleConns(maxConns)
	b.db.SetConnMaxIdleTime(time.Minute) // wait_timeout may be short
	if err := b.base.Open(ctx, patience, b.prepare); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// exposed reports whether a password crosses a network to a server that may be another.
func exposed(c *gomysql.Config) bool {
	host := (&url.URL{Host: c.Addr}).Hostname()
	checked := c.TLS != nil && !c.TLS.InsecureSkipVerify && !c.AllowFallbackToPlaintext || c.TLSConfig == "true"
	return !checked && c.Net == "tcp" && host != "localhost" && !net.ParseIP(host).IsLoopback()
}

// serverOf sets what this package relies on. Parameters stand in the text of a
// statement, so that each statement is one round trip; all of them are numbers and
// bytes.
func serverOf(c *gomysql.Config) (driver.Connector, error) {
	c.InterpolateParams = true
	c.ClientFoundRows = true
	c.CheckConnLiveness = true
	c.MultiStatements, c.RejectReadOnly, c.ColumnsWithAlias = false, false, false
	c.Collation = "utf8mb4_general_ci"
	return gomysql.NewConnector(c)
}

func parse(ctx context.Context, u *url.URL) ([]*gomysql.Config, Options, error) {
	var o Options
	if storeurl.Misread(u) {
		return nil, o, fmt.Errorf("%w: it is not of the form mysql://user:password@host:3306/database (not shown, it may hold a password); percent-encode special characters, such as @ # ? /, in user, password and parameters", backends.ErrURL)
	}
	refuse := func(format string, args ...any) ([]*gomysql.Config, Options, error) {
		return nil, o, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files, passwordFile := tlsfiles.From(p), p.String("password_file", "")
	o = Options{Table: p.String("table", "elector"), Create: p.Bool("create", false), OneNode: p.Bool("one_node", false), AllowAsync: p.Bool("allow_async", false), ReadOnly: p.Bool("readonly", false)}
	if err := p.Done(); err != nil {
		return nil, o, err
	}
	t, err := parseTable(o.Table)
	if err != nil {
		return nil, o, err
	}
	database := strings.Trim(u.Path, "/")
	if database == "" && len(t) == 1 || strings.Contains(database, "/") {
		return refuse("it names no database; write mysql://host:3306/database")
	}
	hosts, err := storeurl.Hosts(u, "3306")
	if err != nil {
		return refuse("%w", err)
	}
	switch err := files.Check(); {
	case err != nil:
		return refuse("%w", err)
	case u.Scheme == "mysql" && files != (tlsfiles.Files{}):
		return refuse("ca, cert, key and server_name are for TLS; write mysqls://")
	}
	login, err := storeurl.LoginOf(ctx, u, passwordFile)
	if err != nil {
		return refuse("%w", err)
	}
	encrypted := u.Scheme == "mysqls"
	again := gomysql.BeforeConnect(func(_ context.Context, c *gomysql.Config) (err error) {
		if encrypted {
			if c.TLS, err = files.For(c.Addr); err != nil {
				return err
			}
		}
		c.User, c.Passwd, err = login()
		return err
	})
	var all []*gomysql.Config
	for _, host := range hosts {
		c := gomysql.NewConfig()
		c.User = u.User.Username()
		c.Passwd, _ = u.User.Password()
		if err := c.Apply(again); err != nil {
			return refuse("%w", err)
		}
		c.Net, c.Addr, c.DBName = "tcp", host, database
		c.Timeout = 5 * time.Second
		c.Logger = &gomysql.NopLogger{} // errors are returned
		c.ConnectionAttributes = "program_name:elector"
		c.TLSConfig = "preferred"
		if encrypted {
			c.TLSConfig = ""
			if c.TLS, err = files.For(host); err != nil {
				return refuse("%w", err)
			}
		}
		all = append(all, c)
	}
	return all, o, nil
}
