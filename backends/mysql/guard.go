package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// refusal is in the error of a guard that refuses. SQL alone cannot raise an error, so
// the guard sets the session's locale, to what it is or to this text, which is none.
const refusal = "elector: stale fencing token"

// guard locks the entry of the acquisition in the index term, and nothing else: it
// reads no other column, and a shared lock on an index locks no row. An acquisition or
// a release that is under way has changed the entry, and the guard waits for it. A
// later one waits for the guard. A renewal changes no indexed column, and locks the
// row alone. With another index, or without, renewals would wait too.
// On a server where the lock keeps nothing out, the guard fails: see unguarded.
const guard = "set %ssession lc_time_names = (select " + notOnTiDB + " case when %s then '" + noGuard +
	"' when count(*) = 1 then @@session.lc_time_names else '" + refusal + " %d of election %s' end" +
	" from %s force index (term) where name = x'%x' and term = x'%x' lock in share mode)"

// bound makes the server close the connection, and so roll back, if it stands idle.
const (
	bound   = "@elector_wait_timeout = @@session.wait_timeout, session wait_timeout = %d, "
	unbound = "set session wait_timeout = @elector_wait_timeout"
)

// Guard returns a statement that fails if another acquisition has followed the lease's,
// or if it was resigned; see [Refused] for its error. Run it in your transaction, on the
// server of the election's table, last before the commit: with any driver or
// object-relational mapper, at any isolation level. It has no parameters, changes
// nothing, and its text differs from call to call: do not prepare it. Its user needs
// select on the table.
//
// From the guard to the end of the transaction no successor can acquire. Bound how long
// the transaction can stand idle then, as Transact does. Renewals do not wait.
//
// The statement also fails if its connection leads to TiDB, Vitess or Galera, where the
// lock would keep no successor out: commit only after a guard without an error.
//
// Guard makes no request. It returns the lease's error if the lease is over, and
// ErrMisconfigured if the election is not on MySQL.
func Guard(lease backends.Lease) (statement string, err error) {
	return guardOf(lease, "")
}

func guardOf(lease backends.Lease, also string) (statement string, err error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "MySQL")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(guard, also, b.unguarded(), a.Record.Token, a.Election, b.table.quoted(), a.Election, term(a.Record)), nil
}

// held locks as guard does, and counts what it has locked. It is 2 where guard fails.
const held = "select " + notOnTiDB + " case when %s then 2 else count(*) end from %s force index (term) where name = ? and term = ? lock in share mode"

// SQLGuard implements [backends.SQLGuarder].
func (b *Backend) SQLGuard(a backends.Acquisition) (backends.SQLGuard, bool) {
	return backends.SQLGuard{
		Dialect: "MySQL",
		Query:   fmt.Sprintf(held, b.unguarded(), b.table.quoted()),
		Args:    []any{[]byte(a.Election), []byte(term(a.Record))},
		Absent:  unguardable,
	}, true
}

// unguardable is for errors of a statement on another table, or on none.
func unguardable(err error) bool {
	switch number(err) {
	case 1044, 1049, 1054, 1142, 1143, 1146, 1176, 1356:
		return true
	}
	return false
}

// Refused reports whether an error of a transaction is the refusal of its guard,
// whatever driver it comes through.
func Refused(err error) bool {
	return err != nil && (errors.Is(err, backends.ErrStale) || strings.Contains(err.Error(), refusal))
}

// Transact calls work in a transaction and commits it under [Guard]. This takes two
// round trips more than a transaction without a guard. It is rolled back if work returns
// an error or panics. Work must not end it, as a statement of DDL does: Transact cannot
// see that, and what was written before is committed without a guard. The transaction
// has the isolation level of the connection. A Transact within work is another
// transaction, on another connection.
//
// Transact returns the error of work, of Guard or of the database; and ErrStale if
// another acquisition has followed the lease's, or it was resigned: then nothing was
// committed, and the caller must stop. If the server does not answer the commit, the
// outcome is unknown.
//
// From the guard on, the server closes the connection if it stands idle for as long as
// the lease was valid then, in whole seconds and at least one, and rolls back. So a
// leader that is stopped between the guard and the commit does not hold up its successor
// for longer than one that crashes, or by a second. The wait_timeout of the connection
// is afterwards what it was.
//
// Package fencesql has a Transact for elections on any store.
func Transact(ctx context.Context, db *sql.DB, lease backends.Lease, work func(*sql.Tx) error) error {
	if _, _, err := fencing.Acquisition[*Backend](lease, "MySQL"); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := work(tx); err != nil {
		return err
	}
	a, _, err := fencing.Acquisition[*Backend](lease, "MySQL")
	if err != nil {
		return err
	}
	statement, err := guardOf(lease, fmt.Sprintf(bound, max(int(a.Remaining.Seconds()), 1)))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		return explain(lease, err) // the server has set none of the variables
	}
	err = tx.Commit()
	release(ctx, conn)
	return err
}

// release restores the connection's wait_timeout, or closes the connection.
func release(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, unbound); err != nil {
		conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// explain adds to an error of a guard what to do about it.
func explain(lease backends.Lease, err error) error {
	if Refused(err) {
		return fmt.Errorf("%w: another acquisition has followed, or the lease was resigned, or the record is gone; nothing was committed: %w", backends.ErrStale, err)
	}
	if unlike(err) {
		return fmt.Errorf("%w: %w: nothing was committed: %w", backends.ErrMisconfigured, errUnguarded, err)
	}
	_, b, over := fencing.Acquisition[*Backend](lease, "MySQL")
	if over != nil {
		return err
	}
	switch number(err) {
	case 1205, 1213:
		return fmt.Errorf("elector: the guard met an acquisition that is under way; nothing was committed, check the lease and try again: %w", err)
	case 1142:
		return fmt.Errorf("%w: to guard a transaction, its user needs select on table %s: %w", backends.ErrDenied, b.table.quoted(), err)
	case 1146, 1176:
		return fmt.Errorf("%w: a guarded transaction must be on the server of table %s, with its index term: %w", backends.ErrMisconfigured, b.table.quoted(), err)
	}
	return err
}
