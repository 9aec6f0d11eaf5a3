//go:build mysql

package stores

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/mysql"
)

// A mySQLLease is an acquisition that is always valid, as a process sees it that was
// paused.
type mySQLLease backends.Acquisition

func (l mySQLLease) Acquisition() (backends.Acquisition, error) { return backends.Acquisition(l), nil }

// A mySQLGuarded is a store with data beside the records.
type mySQLGuarded struct {
	*Store
	t  *testing.T
	db *sql.DB
	b  backends.Backend
}

func newMySQLGuarded(t *testing.T) *mySQLGuarded {
	s := begin(t, MySQL)
	g := &mySQLGuarded{Store: s, t: t, b: opener(s.URL)(t)}
	t.Cleanup(func() { must(t, g.b.Close()) })
	db, err := sql.Open("mysql", s.MySQLName())
	must(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(10)
	g.db = db
	must(t, s.MySQLExec(t.Context(), "create table account (id int primary key, cents int)", "insert into account values (1, 0)"))
	return g
}

// acquire makes the record of an election one of another acquisition.
func (g *mySQLGuarded) acquire(name string, prev backends.Record, nonce string) (backends.Record, error) {
	return g.b.Swap(g.t.Context(), name, prev, backends.Record{Holder: nonce, Token: prev.Token + 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: nonce, Sequence: 1}})
}

func (g *mySQLGuarded) renew(name string, prev backends.Record) backends.Record {
	g.t.Helper()
	next := prev
	next.Attempt.Sequence++
	next, err := g.b.Swap(g.t.Context(), name, prev, next)
	must(g.t, err)
	return next
}

func (g *mySQLGuarded) lease(name string, r backends.Record) mySQLLease {
	return mySQLLease{Backend: g.b, Election: name, Record: r, Remaining: 10 * time.Second}
}

func (g *mySQLGuarded) write(lease mySQLLease) error {
	return mysql.Transact(g.t.Context(), g.db, lease, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(g.t.Context(), "update account set cents = cents + 1 where id = 1")
		return err
	})
}

func (g *mySQLGuarded) cents() (n int) {
	g.t.Helper()
	must(g.t, g.db.QueryRow("select cents from account where id = 1").Scan(&n))
	return n
}

// While a guard's transaction is open, the election is renewed, and no other process
// acquires it. Elections beside it go on as if there were no guard, at each isolation
// level.
func TestMySQLGuardLocks(t *testing.T) {
	g := newMySQLGuarded(t)
	records := map[string]backends.Record{}
	for _, name := range []string{"a", "b", "c"} {
		r, err := g.acquire(name, backends.Record{}, "first")
		must(t, err)
		records[name] = r
	}
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			g.t = t
			tx, err := g.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			must(t, err)
			defer tx.Rollback()
			guard, err := mysql.Guard(g.lease("b", records["b"]))
			must(t, err)
			_, err = tx.Exec(guard)
			must(t, err)
			records["b"] = g.renew("b", records["b"])
			if _, err := g.acquire("b", records["b"], "taken"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("an acquisition beside a guard: %v", err)
			}
			for _, name := range []string{"a", "c"} {
				records[name], err = g.acquire(name, g.renew(name, records[name]), "next")
				must(t, err)
				vacant := records[name]
				vacant.Holder = ""
				records[name], err = g.b.Swap(t.Context(), name, records[name], vacant)
				must(t, err)
				records[name], err = g.acquire(name, records[name], "again")
				must(t, err)
			}
			must(t, tx.Commit())
			records["b"], err = g.acquire("b", records["b"], "after")
			must(t, err)
		})
	}
}

// Guarded writes succeed while the acquisition is the latest, through renewals, and at
// no other time.
func TestMySQLTransact(t *testing.T) {
	g := newMySQLGuarded(t)
	first, err := g.acquire("a", backends.Record{}, "first")
	must(t, err)
	lease := g.lease("a", first)
	must(t, g.write(lease))
	renewed := g.renew("a", first)
	must(t, g.write(lease))
	refused := func(when string) {
		t.Helper()
		if err := g.write(lease); !errors.Is(err, backends.ErrStale) || !mysql.Refused(err) {
			t.Errorf("%s: %v", when, err)
		}
	}
	vacant := renewed
	vacant.Holder = ""
	vacant, err = g.b.Swap(t.Context(), "a", renewed, vacant)
	must(t, err)
	refused("after a release")
	second, err := g.acquire("a", vacant, "second")
	must(t, err)
	refused("after another acquisition")
	must(t, g.write(g.lease("a", second)))
	must(t, g.MySQLExec(t.Context(), "delete from elector where name = 'a'"))
	if lease = g.lease("a", second); g.cents() != 3 {
		t.Errorf("%d writes were committed, want 3", g.cents())
	}
	refused("after the record was deleted")
	again := second
	again.Attempt.Nonce = "another" // with the same token
	_, err = g.b.Swap(t.Context(), "a", backends.Record{}, again)
	must(t, err)
	refused("after another acquisition with the same token")

	if err := mysql.Transact(t.Context(), g.db, g.lease("a", again), func(*sql.Tx) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an error of work: %v", err)
	}
	var timeout int
	for range 10 { // any connection of the pool
		must(t, g.db.QueryRow("select @@session.wait_timeout").Scan(&timeout))
		if timeout != 28800 {
			t.Fatalf("a connection has the wait_timeout %d of a guard", timeout)
		}
	}
	if g.cents() != 3 {
		t.Errorf("%d writes were committed, want 3", g.cents())
	}
}

// A leader that stops between its guard and its commit holds up its successor until the
// lease is over, and no longer.
func TestMySQLGuardEnds(t *testing.T) {
	g := newMySQLGuarded(t)
	r, err := g.acquire("a", backends.Record{}, "first")
	must(t, err)
	lease := g.lease("a", r)
	lease.Remaining = time.Second
	stopped, proceed := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	connector, err := gomysql.NewConnector(stopping(t, g.MySQLName(), func() { close(stopped); <-proceed }))
	must(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	go func() {
		done <- mysql.Transact(context.Background(), db, lease, func(tx *sql.Tx) error {
			_, err := tx.Exec("update account set cents = cents + 1 where id = 1")
			return err
		})
	}()
	<-stopped
	for {
		_, err = g.acquire("a", r, "second")
		if err == nil {
			break
		}
		if !errors.Is(err, backends.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	close(proceed)
	if err := <-done; err == nil || g.cents() != 0 {
		t.Errorf("the stopped leader committed: %v, %d", err, g.cents())
	}
}

// stopping is a configuration whose connections call stop before they send a commit.
func stopping(t *testing.T, name string, stop func()) *gomysql.Config {
	config, err := gomysql.ParseDSN(name)
	must(t, err)
	config.Net = t.Name()
	config.Logger = &gomysql.NopLogger{}
	gomysql.RegisterDialContext(config.Net, func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return &stoppingConn{conn, stop}, err
	})
	t.Cleanup(func() { gomysql.DeregisterDialContext(config.Net) })
	return config
}

type stoppingConn struct {
	net.Conn
	stop func()
}

func (c *stoppingConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("COMMIT")) {
		c.stop()
	}
	return c.Conn.Write(b)
}
