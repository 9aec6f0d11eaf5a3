package fencesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Transact calls work in a transaction of db, and commits it unless a newer leader has
// written: whatever store the election is on, with the same code. It rolls back if work
// returns an error or panics.
//
// Transact first enters the table, as Enter does, with the token of the lease; the
// resource is the name of the election, or of a partition's own. So the lease is
// admitted before the first read of work. From then on each older lease is refused. What a leader reads before its first Transact has returned, an older
// one can still change: read in work, or after a Transact whose work does nothing.
//
// If the election is in the same database, on PostgreSQL or MySQL, Transact also runs
// the election's own guard, last before the commit. It refuses an older leader from the
// moment at which a newer one has acquired, and after a release. Do not rely on that:
// Transact leaves the guard out where it finds no record to compare with, because db is
// another database, or its user may not read the election's table. It looks in the
// transaction itself, since neither equal addresses nor equal names show that two
// connections reach one database. Where the guard finds another acquisition, Transact
// asks the election's store: if the lease is the latest there, db is another database.
// The table needs no such decision, so it is always entered; candidates that reach
// the data in different ways, or that move to another store one by one, also meet there.
//
// Transact returns the error of the lease if that is over, of work, or of the database;
// and ErrStale if the lease is not the latest: then nothing was committed, and the
// caller must stop. After a deadlock or a serialization error nothing was committed
// either: call Transact again. If the database does not answer the commit, the outcome
// is unknown.
//
// Transactions of one election run one after the other. A Transact within work is
// another transaction: it waits for the first one, and so for ever if it has the same
// lease. Work must not end the transaction, as a statement of DDL does on MySQL: what it
// wrote before is fenced, but what it writes afterwards is not. The transaction has the
// isolation level of the connection.
//
// On PostgreSQL and MySQL the server ends the transaction if it stands idle for as long
// as the lease was valid when Transact was called, in whole seconds and at least one on
// MySQL. So a leader that is stopped in it does not hold up its successor for longer
// than one that crashes. On SQLite it does.
//
// Transact takes one round trip more than the transaction without it, and two more on
// MySQL for the bound. The guard takes two more on PostgreSQL and one on MySQL. Where it
// finds no record it takes up to four, once in a lease.
func (t *Table) Transact(ctx context.Context, db *sql.DB, lease backends.Lease, work func(*sql.Tx) error) error {
	a, err := lease.Acquisition()
	if err != nil {
		return err
	}
	tx, end, err := t.begin(ctx, db, a.Remaining)
	if err != nil {
		return fmt.Errorf("fencesql: beginning a transaction: %w", err)
	}
	defer end() // rolls back, unless it was committed; also if work panics
	if err := t.enter(ctx, tx, a.Election, elector.Token(a.Record.Token), a.Remaining); err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return err
	}
	if _, err := lease.Acquisition(); err != nil {
		return err
	}
	err = t.guard(ctx, db, tx, a)
	if err == nil {
		err = tx.Commit()
	}
	switch {
	case !errors.Is(err, sql.ErrTxDone):
		return err
	case ctx.Err() != nil: // which rolled it back
		return context.Cause(ctx)
	}
	return fmt.Errorf("fencesql: the work of a transaction of election %s has ended it itself: %w", a.Election, err)
}

// begin begins a transaction, and returns what ends it. On MySQL it bounds how long the
// connection stands idle; on PostgreSQL enter does.
func (t *Table) begin(ctx context.Context, db *sql.DB, idle time.Duration) (tx *sql.Tx, end func(), err error) {
	if t.dialect != MySQL {
		tx, err = db.BeginTx(ctx, nil)
		return tx, func() { tx.Rollback() }, err
	}
	conn, err := bounded(ctx, db, idle)
	if err != nil {
		return nil, nil, err
	}
	if tx, err = conn.BeginTx(ctx, nil); err != nil {
		release(ctx, conn)
		return nil, nil, err
	}
	return tx, func() {
		tx.Rollback()
		release(ctx, conn)
	}, nil
}

// bounded returns a connection to MySQL that the server closes, and so rolls back, if it
// stands idle for so long.
func bounded(ctx context.Context, db *sql.DB, idle time.Duration) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	seconds := max(int(idle.Seconds()), 1)
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("set @elector_wait_timeout = @@session.wait_timeout, session wait_timeout = %d", seconds)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// release gives a connection of bounded back as it was, or closes it.
func release(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "set session wait_timeout = @elector_wait_timeout"); err != nil {
		conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	conn.Close()
}

// An absence is that a database does not have the record of an acquisition.
type absence struct {
	db    *sql.DB
	nonce string
}

// guard runs the guard of the acquisition, if its election is in the transaction's
// database.
func (t *Table) guard(ctx context.Context, db *sql.DB, tx *sql.Tx, a backends.Acquisition) error {
	b, ok := backends.As[backends.SQLGuarder](a.Backend)
	if !ok {
		return nil
	}
	g, ok := b.SQLGuard(a)
	here := absence{db, a.Record.Attempt.Nonce}
	if last := t.without.Load(); !ok || g.Dialect != dialects[t.dialect] || last != nil && *last == here {
		return nil
	}
	held, absent, err := t.held(ctx, tx, g)
	if held || err != nil {
		return err
	}
	if absent {
		t.without.Store(&here)
		return nil
	}
	// Only the election's store can tell a stale lease from another database.
	switch latest, err := a.Backend.Load(ctx, a.Election); {
	case err != nil:
		return fmt.Errorf("fencesql: the database has another record of election %s, and it is unknown whether the lease is the latest; nothing was committed, try again: %w", a.Election, err)
	case latest.Vacant() || latest.Token != a.Record.Token || latest.Attempt.Nonce != a.Record.Attempt.Nonce:
		return fmt.Errorf("fencesql: writing with token %d of election %s: %w: another acquisition has followed, or the lease was resigned; nothing was committed", a.Record.Token, a.Election, elector.ErrStale)
	}
	t.without.Store(&here)
	return nil
}

// held runs the query of a guard. It reports whether the record is held now, or else
// whether there is nothing to compare with; the transaction is then as before.
func (t *Table) held(ctx context.Context, tx *sql.Tx, g backends.SQLGuard) (held, absent bool, err error) {
	const savepoint = "savepoint elector"
	wrap := func(err error) error { return fmt.Errorf("fencesql: guarding a transaction: %w", err) }
	if t.dialect == PostgreSQL { // where a statement that fails aborts the transaction
		if _, err := tx.ExecContext(ctx, savepoint); err != nil {
			return false, false, wrap(err)
		}
	}
	var n int
	err = tx.QueryRowContext(ctx, g.Query, g.Args...).Scan(&n)
	switch {
	case err == nil && n > 1:
		return false, false, wrap(fmt.Errorf("%w: the transaction's connection leads to a server where a guard keeps no successor out, such as Vitess or a node of Galera; nothing was committed; use the server of the election's table", elector.ErrMisconfigured))
	case err == nil:
		return n == 1, false, nil
	case !g.Absent(err):
		return false, false, wrap(err)
	case t.dialect == PostgreSQL:
		if _, err := tx.ExecContext(ctx, "rollback to "+savepoint); err != nil {
			return false, false, wrap(err)
		}
	}
	return false, true, nil
}
