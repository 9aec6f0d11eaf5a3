package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/setup"
)

// maxConns is how many connections a handle has at most. The server has one limit
// for all machines.
const maxConns = 4

// A connector connects to the first server that takes writes. Log-in and settings take more
// than ten round trips, which may be more than a request has: see package setup.
type connector struct {
	backend *Backend
	servers []driver.Connector
	maker   *setup.Maker[driver.Conn]
}

func newConnector(b *Backend, servers ...driver.Connector) *connector {
	c := &connector{backend: b, servers: servers}
	c.maker = setup.New(c.make, func(conn driver.Conn) { conn.Close() })
	return c
}

// Driver implements [driver.Connector].
func (c *connector) Driver() driver.Driver { return &gomysql.MySQLDriver{} }

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) { return c.maker.Get(ctx) }

// Close implements [io.Closer], for [sql.DB.Close].
func (c *connector) Close() error {
	c.maker.Stop()
	return nil
}

func (c *connector) make(ctx context.Context) (driver.Conn, error) {
	var failed []error
	for i, server := range c.servers {
		conn, err := c.connect(ctx, server, len(c.servers)-i)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, oneLine{errors.Join(failed...)}
}

// connect connects to one server in its share of the time that ctx has left.
func (c *connector) connect(ctx context.Context, server driver.Connector, left int) (driver.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	conn, err := server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.backend.settle(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// session is what every statement of this package relies on, whatever the server's
// defaults and init_connect are. The isolation level makes a plain read see what is
// committed, and nothing else. A statement that would wait for a row's lock for longer
// than a second is refused, and nothing of it is applied.
var session = []string{
	"set character_set_client = utf8mb4, character_set_results = utf8mb4, collation_connection = utf8mb4_general_ci",
	"set autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 1",
	"set session transaction isolation level repeatable read, read write",
}

// asked are the variables of a server that decide whether it can serve. Those of
// semi-synchronous replication have two names. Those of TiDB are there whatever version
// it is set to report.
const asked = "show variables where variable_name in ('version', 'version_comment', 'tidb_current_ts', 'tidb_txn_mode'," +
	" 'autocommit', 'read_only', 'innodb_read_only', 'wsrep_on', 'group_replication_group_name'," +
	" 'group_replication_single_primary_mode', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')"

// settle prepares a new connection, and refuses it if its server cannot serve.
func (b *Backend) settle(ctx context.Context, conn driver.Conn) error {
	var failed error
	for _, statement := range session {
		if _, failed = conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); failed != nil {
			break // perhaps because the server only looks like MySQL
		}
	}
	is, err := variables(ctx, conn, asked)
	if err != nil && ctx.Err() == nil {
		is, _ = variables(ctx, conn, version)
	}
	if err := cmp.Or(alike(is), failed, err); err != nil {
		return err
	}
	_, wsrep := is["wsrep_on"]
	b.wsrep.Store(wsrep)
	switch {
	case !on(is["autocommit"]):
		return errAutocommit
	case b.options.ReadOnly:
		return nil
	case on(is["read_only"]) || on(is["innodb_read_only"]):
		return errReadOnly
	case on(is["wsrep_on"]) && !b.options.OneNode:
		return errGalera
	case is["group_replication_group_name"] != "" && !on(is["group_replication_single_primary_mode"]) && !b.options.OneNode:
		return errMultiPrimary
	}
	b.semiSync.Store(on(is["rpl_semi_sync_master_enabled"]) || on(is["rpl_semi_sync_source_enabled"]))
	return nil
}

// variables returns names, in lower case, and values.
func variables(ctx context.Context, conn driver.Conn, statement string) (map[string]string, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, statement, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	is := map[string]string{}
	for pair := make([]driver.Value, 2); rows.Next(pair) == nil; {
		is[strings.ToLower(text(pair[0]))] = text(pair[1])
	}
	return is, nil
}

func text(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// on reports whether a server's variable is not off. read_only has more than two
// values in newer versions of MariaDB.
func on(value string) bool { return value != "" && value != "0" && !strings.EqualFold(value, "OFF") }

// do calls use with a connection, and again with another one only if use sent
// nothing. If the server replicates semi-synchronously, do then finds out whether it
// still does: without a replica's answer in time it goes on without, and reports
// nothing. It does again when a replica has everything. So whatever use has read or
// written until then is on a replica.
func (b *Backend) do(ctx context.Context, use func(*sql.Conn) error) error {
	for try := 0; ; try++ {
		err := b.once(ctx, use)
		if !errors.Is(err, driver.ErrBadConn) || try == maxConns {
			return err
		}
	}
}

func (b *Backend) once(ctx context.Context, use func(*sql.Conn) error) error {
	conn, err := b.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = use(conn)
	if err == nil && b.semiSync.Load() && !b.options.AllowAsync {
		err = replicated(ctx, conn)
	}
	refused := readOnly(err)
	if refused {
		conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	if refused || broken(err) && !errors.Is(context.Cause(ctx), context.Canceled) {
		// The server restarted, takes no writes any more, or the network is gone: that
		// holds for the idle connections too. Finding out one call at a time could cost
		// a lease. The next connection looks at all servers again.
		b.connector.maker.Drop()
		b.db.SetMaxIdleConns(0)
		b.db.SetMaxIdleConns(maxConns)
	}
	return err
}

// readOnly reports whether a server has refused a write because it takes none.
func readOnly(err error) bool {
	switch number(err) {
	case 1290, 1792, 1836:
		return true
	}
	return errors.Is(err, errReadOnly)
}

// acquire waits for a connection for at most half of the time that ctx has left. A
// statement that is sent at the last moment is cancelled, which costs its connection.
func (b *Backend) acquire(ctx context.Context) (*sql.Conn, error) {
	wait := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	conn, err := b.db.Conn(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no connection in half of the request's time: the server accepts none or does not answer, a firewall drops the packets, or all %d connections of this process are busy; nothing was sent", maxConns)
	}
	return conn, err
}

// replicated returns errAsync if the server has stopped waiting for its replicas.
func replicated(ctx context.Context, conn *sql.Conn) error {
	var name, status string
	err := conn.QueryRowContext(ctx, "show global status where variable_name in ('rpl_semi_sync_master_status', 'rpl_semi_sync_source_status')").Scan(&name, &status)
	switch {
	case err != nil: // not ErrBadConn: something was sent before
		return fmt.Errorf("%w: asking whether a replica has the write: %v", backends.ErrUnavailable, err)
	case !on(status):
		return errAsync
	}
	return nil
}

// broken reports whether the error ended the connection.
func broken(err error) bool {
	return errors.Is(err, gomysql.ErrInvalidConn) || errors.Is(err, context.DeadlineExceeded)
}
