package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/fence/fencesql"
)

// A lease is one that its leader takes for valid, as a paused process does.
type lease struct {
	of   backends.Acquisition
	over func() error // may be nil
}

func (l lease) Acquisition() (backends.Acquisition, error) {
	if l.over != nil {
		return l.of, l.over()
	}
	return l.of, nil
}

// A place is where data is written, next to a table of tokens.
type place struct {
	*testing.T
	database
	table *fencesql.Table
}

func (d database) place(t *testing.T) place {
	p := place{t, d, d.table(t, "fences")}
	d.exec(t, "create table notes (note varchar(100))")
	return p
}

// writes notes something under a lease.
func (p place) writes(l backends.Lease, note string) error {
	return p.table.Transact(p.Context(), p.DB, l, p.notes(note))
}

func (p place) notes(note string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(p.Context(), "insert into notes values ('"+note+"')")
		return err
	}
}

func (p place) has(note string) bool {
	p.Helper()
	var n int
	p.must(p.QueryRowContext(p.Context(), "select count(*) from notes where note = '"+note+"'").Scan(&n))
	return n > 0
}

// succeeds wants a write to be committed.
func (p place) succeeds(what string, l backends.Lease) {
	p.Helper()
	if err := p.writes(l, what); err != nil || !p.has(what) {
		p.Errorf("%s: %v", what, err)
	}
}

// stale wants a write to be refused as stale.
func (p place) stale(what string, l backends.Lease) {
	p.Helper()
	if err := p.writes(l, what); !errors.Is(err, elector.ErrStale) || p.has(what) {
		p.Errorf("%s: %v, want ErrStale", what, err)
	}
}

func (p place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p place) opens(url string) backends.Backend {
	p.Helper()
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.DiscardHandler)) // it creates the table
	b, err := backends.Open(p.Context(), url)
	p.must(err)
	p.Cleanup(func() { b.Close() })
	return b
}

// follows replaces a record by that of the next acquisition.
func (p place) follows(b backends.Backend, election string, prev backends.Record) (backends.Record, lease) {
	p.Helper()
	r, err := b.Swap(p.Context(), election, prev, backends.Record{Holder: "a", Token: prev.Token + 1, TTL: 15 * time.Second, RenewEvery: time.Second,
		Attempt: backends.Attempt{Nonce: fmt.Sprintf("%p%d", b, prev.Token), Sequence: 1}})
	p.must(err)
	return r, lease{backends.Acquisition{Backend: b, Election: election, Record: r, Remaining: time.Minute}, nil}
}

func (p place) renews(b backends.Backend, election string, r backends.Record) backends.Record {
	p.Helper()
	next := r
	next.Attempt.Sequence++
	next, err := b.Swap(p.Context(), election, r, next)
	p.must(err)
	return next
}

// On each database, an election on another store: the token is admitted before the work
// begins, and refused once a higher one has been admitted.
func TestTransact(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		p := d.place(t)
		p.succeeds("first", elsewhere(5))
		p.succeeds("again", elsewhere(5))
		p.must(p.table.Transact(t.Context(), d.DB, elsewhere(6), func(tx *sql.Tx) error {
			var token int
			err := tx.QueryRowContext(t.Context(), "select token from fences where resource = 'ledger'").Scan(&token)
			if err == nil && token != 6 {
				t.Errorf("work begins with token %d admitted, want 6", token)
			}
			return err
		}))
		p.stale("overtaken", elsewhere(5))
		failed := errors.New("failed")
		if err := p.table.Transact(t.Context(), d.DB, elsewhere(7), func(tx *sql.Tx) error {
			p.must(p.notes("failed")(tx))
			return failed
		}); err != failed {
			t.Errorf("an error of work: %v", err)
		}
		func() {
			defer func() { recover() }()
			p.table.Transact(t.Context(), d.DB, elsewhere(7), func(tx *sql.Tx) error {
				p.must(p.notes("failed")(tx))
				panic("work")
			})
		}()
		p.succeeds("after work that failed", elsewhere(6))
		looks := 0
		ends := elsewhere(6)
		ends.over = func() error {
			if looks++; looks > 1 {
				return elector.ErrLost
			}
			return nil
		}
		if err := p.writes(ends, "failed"); !errors.Is(err, elector.ErrLost) {
			t.Errorf("a lease that ends during work: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := p.table.Transact(ctx, d.DB, elsewhere(6), func(tx *sql.Tx) error {
			err := p.notes("failed")(tx)
			cancel(failed)
			for tx.Commit() == nil { // until the transaction has seen it
				t.Fatal("it was committed after its context had ended")
			}
			return err
		}); !errors.Is(err, failed) && !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ends: %v", err)
		}
		if p.has("failed") {
			t.Error("a transaction that failed was committed")
		}
		if err := p.table.Transact(t.Context(), d.DB, elsewhere(6), func(tx *sql.Tx) error { return tx.Commit() }); err == nil || !strings.Contains(err.Error(), "ended it itself") {
			t.Errorf("work that ends the transaction: %v", err)
		}
		if inUse := d.Stats().InUse; inUse != 0 {
			t.Errorf("%d connections are still in use", inUse)
		}

		// A table of another make, which allows what CreateSQL does not.
		d.exec(t, "create table open_fences (resource varchar(255) primary key, token bigint, writes bigint not null)")
		d.exec(t, "insert into open_fences values ('ledger', null, 0)")
		p.table = d.table(t, "open_fences")
		if err := p.writes(elsewhere(9), "null"); err == nil || p.has("null") {
			t.Errorf("a table whose token is null admits: %v", err)
		}
	})
}

// With the election in the same database, the guard refuses an older leader before a
// newer one has entered. Where the database is another one, whatever it has in a table
// of the same name, the election's leader writes, and the token refuses older ones.
func TestTransactGuard(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		if d.election == "" {
			return // no elections in SQLite
		}
		home := d.place(t)
		b := home.opens(d.election)
		r, first := home.follows(b, "ledger", backends.Record{})
		home.succeeds("first", first)
		r = home.renews(b, "ledger", r)
		home.succeeds("renewed", first)
		r, second := home.follows(b, "ledger", r)
		home.stale("after another acquisition", first)
		home.succeeds("second", second)
		vacant := r
		vacant.Holder = ""
		vacant.Attempt.Sequence++
		r, err := b.Swap(t.Context(), "ledger", r, vacant)
		home.must(err)
		home.stale("after a release", second)
		r, third := home.follows(b, "ledger", r)

		d.exec(t, "create database data")
		other := d
		other.name = beside(d.name)
		other.election = beside(d.election)
		other.DB = openSQL(t, d.driver, other.name)
		away := other.place(t)
		if d.dialect == fencesql.MySQL {
			// A server's databases are one, to a user who may read both.
			away.succeeds("third", third)
			var fourth lease
			r, fourth = home.follows(b, "ledger", r)
			away.stale("third, overtaken", third)
			away.succeeds("fourth", fourth)
			r, third = home.follows(b, "ledger", r)
			other = mariaDB(t, "")
			away = other.place(t)
		}
		away.succeeds("no table", third)
		foreign := away.opens(other.election)
		r, fourth := home.follows(b, "ledger", r)
		away.succeeds("a table without the record", fourth)
		f, _ := away.follows(foreign, "ledger", backends.Record{})
		r, fifth := home.follows(b, "ledger", r)
		away.succeeds("a lower record", fifth)
		for range 20 {
			f, _ = away.follows(foreign, "ledger", f)
		}
		r, sixth := home.follows(b, "ledger", r)
		away.succeeds("a higher record", sixth)
		away.stale("overtaken", fifth)
		away.exec(t, "drop table elector")
		away.exec(t, "create view elector as select 1 as other")
		r, seventh := home.follows(b, "ledger", r)
		away.succeeds("a view", seventh)
		r, stale := home.follows(b, "ledger", r)
		_, latest := home.follows(b, "ledger", r)
		away.succeeds("an older one before the latest has entered, where there is no guard", stale)
		away.succeeds("latest", latest)
		away.stale("an older one", stale)
	})
}

// beside is the address of the database data on the same server.
func beside(address string) string {
	address, query, _ := strings.Cut(address, "?")
	return address[:strings.LastIndex(address, "/")] + "/data?" + query
}

// A user without a right to the election's table writes under the token alone.
func TestTransactWithoutRights(t *testing.T) {
	d := postgres(t)
	p := d.place(t)
	b := p.opens(d.election)
	for _, statement := range []string{"create role writer login", "grant all on fences, notes to writer"} {
		d.exec(t, statement)
	}
	p.DB = openSQL(t, "pgx", strings.Replace(d.name, "postgres@", "writer@", 1))
	r, first := p.follows(b, "ledger", backends.Record{})
	p.succeeds("without a right", first)
	d.exec(t, "grant select on elector to writer")
	r, second := p.follows(b, "ledger", r)
	p.succeeds("without the right to lock", second)
	p.stale("overtaken", first)
	d.exec(t, "grant update (value) on elector to writer")
	r, third := p.follows(b, "ledger", r)
	p.succeeds("with the right", third)
	_, fourth := p.follows(b, "ledger", r)
	p.stale("refused by the guard", third)
	p.succeeds("the latest", fourth)
}

// With each driver, and each way in which pgx sends statements, such as through a pooler.
func TestTransactDrivers(t *testing.T) {
	d := postgres(t)
	p := d.place(t)
	b := p.opens(d.election)
	var r backends.Record
	for name, db := range map[string]*sql.DB{
		"pq":     openSQL(t, "postgres", d.name+"?sslmode=disable"),
		"simple": openSQL(t, "pgx", d.name+"?default_query_exec_mode=simple_protocol"),
		"exec":   openSQL(t, "pgx", d.name+"?default_query_exec_mode=exec"),
	} {
		p.DB = db
		var l, next lease
		r, l = p.follows(b, "ledger", r)
		p.succeeds(name, l)
		r, next = p.follows(b, "ledger", r)
		p.stale(name+" overtaken", l)
		d.exec(t, "alter table elector rename to renamed")
		p.succeeds(name+" without the table", next)
		p.stale(name+" refused by the token", l)
		d.exec(t, "alter table renamed rename to elector")
	}
}

// If the guard finds another record and the election's store cannot say whose it is,
// nothing is committed.
func TestTransactWithoutStore(t *testing.T) {
	d := postgres(t)
	p := d.place(t)
	b := p.opens(d.election)
	_, l := p.follows(b, "ledger", backends.Record{})
	d.exec(t, "delete from elector")
	p.must(b.Close())
	if err := p.writes(l, "unknown"); err == nil || errors.Is(err, elector.ErrStale) || p.has("unknown") {
		t.Errorf("without the store: %v", err)
	}
}

// At REPEATABLE READ and above a takeover during the work comes back as an error of
// the driver, which asks to begin again; the second time it is stale.
func TestTransactIsolation(t *testing.T) {
	d := postgres(t)
	p := d.place(t)
	b := p.opens(d.election)
	for _, level := range []string{"repeatable%20read", "serializable"} {
		p.DB = openSQL(t, "pgx", d.name+"?default_transaction_isolation="+level)
		election := strings.ReplaceAll(level, "%20", "-")
		r, l := p.follows(b, election, backends.Record{})
		p.succeeds(level, l)
		p.must(p.table.Transact(t.Context(), p.DB, l, func(tx *sql.Tx) error {
			r = p.renews(b, election, r)
			return p.notes("renewed")(tx)
		}))
		err := p.table.Transact(t.Context(), p.DB, l, func(tx *sql.Tx) error {
			_, l2 := p.follows(b, election, r)
			r = l2.of.Record
			return p.notes(level + " overtaken")(tx)
		})
		if err == nil || !d.again(err) || p.has(level+" overtaken") {
			t.Errorf("%s: a takeover during the work: %v, want a serialization error", level, err)
		}
		p.stale("again", l)
	}
}

// Two transactions that wait for each other are ended by the database with its own
// error.
func TestTransactDeadlock(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		if d.dialect == fencesql.SQLite {
			return // which has one writer
		}
		p := d.place(t)
		d.exec(t, "create table locks (id int primary key, n int not null)")
		d.exec(t, "insert into locks values (1, 0), (2, 0)")
		lock := func(tx *sql.Tx, id int) error {
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf("update locks set n = n + 1 where id = %d", id))
			return err
		}
		one, two := elsewhere(1), elsewhere(1)
		two.of.Election = "another"
		p.succeeds("one", one)
		p.succeeds("two", two)
		both, done := make(chan bool, 2), make(chan error, 2)
		for i, l := range []lease{one, two} {
			go func() {
				done <- p.table.Transact(t.Context(), d.DB, l, func(tx *sql.Tx) error {
					err := lock(tx, 1+i)
					both <- true
					for err == nil && len(both) < 2 && t.Context().Err() == nil {
						time.Sleep(time.Millisecond)
					}
					if err == nil {
						err = lock(tx, 2-i)
					}
					return err
				})
			}()
		}
		first, second := <-done, <-done
		if err := errors.Join(first, second); first != nil == (second != nil) || !d.again(err) {
			t.Errorf("a deadlock: %v", err)
		}
	})
}

// A leader that stops in its transaction holds up its successor until its lease is
// over, and no longer. The connection is afterwards as it was.
func TestTransactBound(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		if d.dialect == fencesql.SQLite {
			return // which no server ends
		}
		p := d.place(t)
		setting := map[fencesql.Dialect]string{fencesql.PostgreSQL: "current_setting('idle_in_transaction_session_timeout')", fencesql.MySQL: "@@session.wait_timeout"}[d.dialect]
		look := func() (s string) {
			t.Helper()
			p.must(d.QueryRowContext(t.Context(), "select "+setting).Scan(&s))
			return s
		}
		d.SetMaxOpenConns(1)
		before := look()
		p.succeeds("bounded", elsewhere(1))
		if err := p.writes(elsewhere(0), "invalid"); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("token 0: %v", err)
		}
		if after := look(); after != before {
			t.Errorf("the bound is %s after a transaction, was %s", after, before)
		}
		d.SetMaxOpenConns(0)
		stopped := elsewhere(1)
		stopped.of.Remaining = time.Second
		err := p.table.Transact(t.Context(), d.DB, stopped, func(tx *sql.Tx) error {
			p.must(p.notes("stopped")(tx))
			p.succeeds("successor", elsewhere(2)) // waits for the end of this one
			return nil
		})
		if err == nil || p.has("stopped") {
			t.Errorf("a transaction that stood idle until its lease was over: %v", err)
		}
	})
}

// Connections that the server has closed are replaced.
func TestTransactClosedConnections(t *testing.T) {
	d := mariaDB(t, "")
	p := d.place(t)
	d.SetMaxIdleConns(5)
	var all []*sql.Conn
	for range 5 {
		conn, err := d.Conn(t.Context())
		p.must(err)
		_, err = conn.ExecContext(t.Context(), "set session wait_timeout = 1")
		p.must(err)
		all = append(all, conn)
	}
	admin := openSQL(t, d.driver, d.name)
	for _, conn := range all {
		p.must(conn.Close())
	}
	for n := -1; n != 1; { // the administrator's own
		p.must(admin.QueryRowContext(t.Context(), "select count(*) from information_schema.processlist where user = 'root'").Scan(&n))
		time.Sleep(10 * time.Millisecond)
	}
	p.succeeds("on a new connection", elsewhere(1))
}
