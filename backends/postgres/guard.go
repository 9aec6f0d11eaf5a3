package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// refusal is in the error of a guard that refuses. SQL alone cannot raise an
// error, so the guard fails to read this text as a number.
const refusal = "elector: stale fencing token"

// guard counts the row that it locks. If the row is not that of the acquisition, the
// count is 0 and the number is computed, which fails. The server cannot compute it
// earlier, because the text depends on the table.
//
// The lock on the row's key waits for a takeover that is under way, and then looks
// at the row again. A later takeover waits for the lock, because it changes the
// token, which a unique index has. A renewal changes no such column.
const guard = `select set_config('idle_in_transaction_session_timeout', '%[1]d', true), case when count(*) = 1 then 0
	else cast('` + refusal + ` %[4]d of election ' || %[3]s || case when exists (select from %[2]s where name = %[3]s)
		then '' else '; database ' || current_database() || ' has no record of it' end as integer) end
from (select from %[2]s where name = %[3]s and token = %[4]d and holder <> '' and starts_with(attempt, %[5]s) for key share) as held`

// Guard returns a statement that fails if another acquisition has followed the
// lease's; see [Refused] for its error. At READ COMMITTED it also fails if the lease
// was resigned. Run it in your transaction, in the database of the election's table,
// last before the commit: with any driver or object-relational mapper, at any
// isolation level. It has no parameters, and its text differs from call to call: do not
// prepare it. Its role needs select on the table, and update on one of its columns.
//
// From the guard to the end of the transaction no successor can acquire. So the
// guard makes the server end the transaction if it then stands idle for as long as
// the lease is still valid, whatever idle_in_transaction_session_timeout was before.
// Renewals do not wait.
//
// Guard makes no request. It returns the lease's error if the lease is over, and
// ErrMisconfigured if the election is not on PostgreSQL itself or its table lacks the
// index.
func Guard(lease backends.Lease) (statement string, err error) {
	a, b, err := acquisition(lease)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(guard, idle(a), b.table.quoted(), literal(a.Election), a.Record.Token, literal(a.Record.Attempt.Nonce+".")), nil
}

// held locks the record of an acquisition as guard does, and counts it.
const held = "select count(*) from (select from %s where name = $1 and token = $2 and holder <> '' and starts_with(attempt, $3) for key share) as held"

// SQLGuard implements [backends.SQLGuarder]. There is none without the
// index, and none on a server that only looks like PostgreSQL.
func (b *Backend) SQLGuard(a backends.Acquisition) (backends.SQLGuard, bool) {
	return backends.SQLGuard{
		Dialect: "PostgreSQL",
		Query:   fmt.Sprintf(held, b.table.quoted()),
		Args:    []any{a.Election, int64(a.Record.Token), a.Record.Attempt.Nonce + "."},
		Absent:  unguardable,
	}, b.guarded && b.like == ""
}

// unguardable is for errors of a statement on another table, or on none: of class 42, or
// that a view cannot be locked.
func unguardable(err error) bool {
	var server interface{ SQLState() string } // of several drivers
	return errors.As(err, &server) && (strings.HasPrefix(server.SQLState(), "42") || server.SQLState() == "0A000")
}

// Refused reports whether an error of a transaction is the refusal of its guard,
// whatever driver it comes through.
func Refused(err error) bool {
	return err != nil && (errors.Is(err, backends.ErrStale) || strings.Contains(err.Error(), refusal))
}

// Transact calls work in a transaction and commits it under [Guard], in one message.
// The transaction has one round trip for its beginning and one for its end, as
// without a guard. It is rolled back if work returns an error or panics. Work must
// not end it. Its first statement can set the isolation level. A Transact within work
// is another transaction, on another connection.
//
// Transact returns the error of work, of Guard or of the pool; and ErrStale if
// another acquisition has followed the lease's, or Guard finds it resigned: then
// nothing was committed, and the caller must stop. If the server answers the commit
// with another error, of severity ERROR, nothing was committed either. If it does not
// answer, because the connection or ctx ends, or a pooler answers that it has lost the
// server, the outcome is unknown.
//
// The server ends the transaction if it stands idle for as long as the lease was
// valid when it began. So a leader that is stopped in a transaction does not hold up
// its successor for longer than one that crashes.
func Transact(ctx context.Context, pool *pgxpool.Pool, lease backends.Lease, work func(pgx.Tx) error) error {
	bound, err := bounded(lease)
	if err != nil {
		return err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: "begin; " + bound})
	if err != nil {
		return err
	}
	const none = 'I' // the status of a connection without a transaction
	status := conn.Conn().PgConn().TxStatus
	defer func() { // also if work panics
		if status() != none {
			rollBack(ctx, tx)
		}
	}()
	if err := work(tx); err != nil {
		return err
	}
	if status() == none {
		return errEnded
	}
	statement, err := Guard(lease)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, statement+"; commit") // if the guard fails, the server ignores the rest
	return explain(lease, err)
}

// TransactDB is [Transact] for database/sql, with any driver. It has two more round
// trips, and it cannot see that work has ended the transaction with a statement of its
// own: that writes without a guard. Package fencesql has a Transact for elections on any
// store.
func TransactDB(ctx context.Context, db *sql.DB, lease backends.Lease, work func(*sql.Tx) error) error {
	bound, err := bounded(lease)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if _, err := tx.ExecContext(ctx, bound); err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return err
	}
	statement, err := Guard(lease)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		return explain(lease, err)
	}
	return tx.Commit()
}

var errEnded = errors.New("elector: the work of a guarded transaction has ended the transaction itself, without the guard")

// acquisition returns what a guard compares with, and the backend.
func acquisition(lease backends.Lease) (backends.Acquisition, *Backend, error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "PostgreSQL")
	if err == nil && b.like != "" {
		err = fmt.Errorf("%w: election %s is on %s, where the row lock of a guard may keep no successor out; fence the write with its token, see package fencesql", backends.ErrMisconfigured, a.Election, b.like)
	} else if err == nil && !b.guarded {
		err = fmt.Errorf("%w: election %s: table %s has no unique index on name and token, so takeovers would not wait for a guard: run %s; then restart this process", backends.ErrMisconfigured, a.Election, b.table.quoted(), b.table.indexSQL())
	}
	return a, b, err
}

// bounded returns the statement that bounds how long a transaction stands idle.
func bounded(lease backends.Lease) (statement string, err error) {
	a, _, err := acquisition(lease)
	return fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", idle(a)), err
}

// idle is how long a transaction may stand idle, in milliseconds.
func idle(a backends.Acquisition) int64 {
	return max(a.Remaining.Milliseconds(), 1) // 0 would be for ever
}

// literal quotes s, whatever standard_conforming_strings says.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// explain adds to an error of a guard what to do about it.
func explain(lease backends.Lease, err error) error {
	if err == nil {
		return nil
	}
	if Refused(err) {
		return fmt.Errorf("%w: another acquisition has followed, or the record is gone; nothing was committed: %w", backends.ErrStale, err)
	}
	var server interface{ SQLState() string } // of several drivers
	_, b, over := acquisition(lease)
	if over != nil || !errors.As(err, &server) {
		return err
	}
	switch server.SQLState() {
	case "42501":
		return fmt.Errorf("%w: to guard a transaction, its role needs select on table %s, and update on one of its columns: %w", backends.ErrDenied, b.table.quoted(), err)
	case "42P01":
		return fmt.Errorf("%w: a guarded transaction must be in the database of table %s: %w", backends.ErrMisconfigured, b.table.quoted(), err)
	}
	return err
}

// rollBack ends a transaction, even if ctx has ended. If that fails, the pool closes
// the connection, and the server then rolls back.
func rollBack(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	tx.Rollback(ctx)
}
