package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"sync"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
)

// A fake is a server without a network: a driver that gives canned answers and
// remembers what it was asked.
type fake struct {
	mutex     sync.Mutex
	variables map[string]string // of show variables
	status    string            // of semi-synchronous replication; "lost" for a lost connection
	row       []driver.Value    // that a query returns; nil is none
	matched   int64             // rows of an UPDATE or INSERT
	fails     []error           // of the next statements after settling
	asked     []string          // statements after settling
	with      [][]driver.NamedValue
	settled   []string
	unset     error // of what settles a session
	connected int
}

// Driver implements [driver.Connector].
func (f *fake) Driver() driver.Driver { return &gomysql.MySQLDriver{} }

// Connect implements [driver.Connector].
func (f *fake) Connect(context.Context) (driver.Conn, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.connected++
	return &fakeConn{fake: f}, nil
}

// backend returns a backend on the fake. Its table was not checked.
func (f *fake) backend(t testing.TB, o Options) *Backend {
	b := &Backend{table: table{"db", "elector"}, user: "app", options: o}
	b.base = backends.NewBase("mysql://h/db?table=db.elector", b.classify)
	b.connector = newConnector(b, f)
	b.db = sql.OpenDB(b.connector)
	b.db.SetMaxOpenConns(maxConns)
	t.Cleanup(func() { b.Close() })
	return b
}

type fakeConn struct{ fake *fake }

func (*fakeConn) Prepare(string) (driver.Stmt, error) { panic("a statement is prepared") }
func (*fakeConn) Begin() (driver.Tx, error)           { panic("a transaction is begun") }
func (*fakeConn) Close() error                        { return nil }

// note notes a statement, and returns whether it fails.
func (c *fakeConn) note(query string, args []driver.NamedValue) error {
	f := c.fake
	f.asked = append(f.asked, query)
	f.with = append(f.with, args)
	if len(f.fails) == 0 {
		return nil
	}
	err := f.fails[0]
	f.fails = f.fails[1:]
	return err
}

func (c *fakeConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.fake.mutex.Lock()
	defer c.fake.mutex.Unlock()
	if strings.HasPrefix(query, "set ") {
		c.fake.settled = append(c.fake.settled, query)
		return driver.RowsAffected(0), c.fake.unset
	}
	if err := c.note(query, args); err != nil {
		return nil, err
	}
	return driver.RowsAffected(c.fake.matched), nil
}

func (c *fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	f := c.fake
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case query == version:
		return &fakeRows{width: 2, all: [][]driver.Value{{[]byte("version"), []byte(f.variables["version"] + " " + f.variables["version_comment"])}}}, nil
	case query == asked && f.variables["autocommit"] == "":
		return nil, &gomysql.MySQLError{Number: 1105, Message: "VT12001: unsupported"}
	case query == asked:
		rows := &fakeRows{width: 2}
		for name, value := range f.variables {
			rows.all = append(rows.all, []driver.Value{[]byte(name), []byte(value)})
		}
		return rows, nil
	case strings.HasPrefix(query, "show global status"):
		if f.status == "lost" {
			return nil, driver.ErrBadConn
		}
		return &fakeRows{width: 2, all: [][]driver.Value{{[]byte("Rpl_semi_sync_master_status"), []byte(f.status)}}}, nil
	}
	if err := c.note(query, args); err != nil {
		return nil, err
	}
	return &fakeRows{width: len(f.row), all: [][]driver.Value{f.row}}, nil
}

type fakeRows struct {
	width int
	all   [][]driver.Value
}

func (r *fakeRows) Columns() []string { return make([]string, r.width) }
func (*fakeRows) Close() error        { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.all) == 0 {
		return io.EOF
	}
	copy(dest, r.all[0])
	r.all = r.all[1:]
	return nil
}

// serving are the variables of a server that serves.
func serving(more ...string) map[string]string {
	is := map[string]string{"version": "10.11.6-MariaDB-0+deb12u1", "version_comment": "Debian 12", "autocommit": "ON", "read_only": "OFF", "innodb_read_only": "OFF", "wsrep_on": "OFF"}
	for i := 0; i < len(more); i += 2 {
		is[more[i]] = more[i+1]
	}
	return is
}

// absent is what a Load of a missing record reads.
func absent() []driver.Value {
	row := make([]driver.Value, 11)
	row[0], row[1] = int64(0), int64(0)
	return row
}
