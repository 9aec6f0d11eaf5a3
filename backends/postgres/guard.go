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
)

// refusal is in the error of a guard that refuses. The server cannot raise an
// error of a statement's own, so the guard fails to read this as a number.
const refusal = "elector: stale fencing token"

// guard locks the key of the election's row, which waits for a takeover that is
// under way and holds up a later one until the transaction ends: a takeover
// changes the token, which is a part of a unique index, and a renewal does not.
// The count keeps the server from computing the failing branch in advance.
const guard = `select case when count(*) = 1 then 0 else ('` + refusal + `, rows: ' || count(*))::integer end
from (select from %s where name = $1 and token = $2 and holder <> '' and starts_with(attempt, $3) for key share) as held`

// Guard returns a statement, and its arguments, that fails in a transaction once
// another acquisition has followed the lease's: see Refused. Make it the last
// statement before the commit. Until the transaction ends no successor can
// acquire; so bound the time, with idle_in_transaction_session_timeout for one, as
// Transact does. Renewals are not held up. Any driver and any object-relational
// mapper can run it, at any isolation level, in the database of the election's
// table. Its role needs select on the table, and update on one column.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on PostgreSQL or its table lacks the
// index.
func Guard(holding backends.Holding) (statement string, args []any, err error) {
	a, err := holding.Acquisition()
	if err != nil {
		return "", nil, err
	}
	b, ok := backends.As[*Backend](a.Backend)
	switch {
	case !ok:
		return "", nil, fmt.Errorf("%w: election %s is not on PostgreSQL, so PostgreSQL cannot guard a write with its lease", backends.ErrMisconfigured, a.Election)
	case !b.guarded:
		return "", nil, fmt.Errorf("%w: table %s has no unique index on name and token, so takeovers would not wait for a guard: run %s, and open the backend again", backends.ErrMisconfigured, b.table.quoted(), b.table.indexSQL())
	}
	return fmt.Sprintf(guard, b.table.quoted()), []any{a.Election, int64(a.Record.Token), a.Record.Attempt.Nonce + "."}, nil
}

// Refused reports whether an error of a transaction is the refusal of a Guard in
// it, through whatever driver it came.
func Refused(err error) bool {
	return err != nil && (errors.Is(err, backends.ErrStale) || strings.Contains(err.Error(), refusal))
}

// Transact calls work in a transaction and commits it under Guard, which costs no
// round trip. It returns work's error, and then rolls back; the errors of Guard;
// ErrStale if another acquisition has followed the lease's: nothing was committed
// then, and the caller must stop; and the errors of the pool. After an error of
// the commit other than ErrStale the outcome is unknown.
//
// The server ends a transaction that stands idle for as long as the lease was
// valid at its beginning: a leader that is stopped in the middle holds up its
// successor no longer than one that crashed.
func Transact(ctx context.Context, pool *pgxpool.Pool, holding backends.Holding, work func(pgx.Tx) error) error {
	bound, err := idleBound(holding)
	if err != nil {
		return err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // a connection within a transaction is closed
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: fmt.Sprintf("begin; set local idle_in_transaction_session_timeout = %d", bound.Milliseconds())})
	if err != nil {
		return err
	}
	err = work(tx)
	statement, args, refused := "", []any(nil), error(nil)
	if err == nil {
		statement, args, refused = Guard(holding)
		err = refused
	}
	if err != nil {
		return errors.Join(err, rollBack(ctx, tx))
	}
	batch := &pgx.Batch{}
	batch.Queue(statement, args...)
	batch.Queue("commit") // not sent to execution if the guard refuses
	return staleIf(tx.SendBatch(ctx, batch).Close())
}

// TransactDB is Transact for database/sql, with any driver. The guard is a round
// trip of its own. options may be nil.
func TransactDB(ctx context.Context, db *sql.DB, holding backends.Holding, options *sql.TxOptions, work func(*sql.Tx) error) error {
	bound, err := idleBound(holding)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", bound.Milliseconds())); err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return err
	}
	statement, args, err := Guard(holding)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return staleIf(err)
	}
	return tx.Commit()
}

// idleBound is how long the server may wait for the next statement.
func idleBound(holding backends.Holding) (time.Duration, error) {
	if _, _, err := Guard(holding); err != nil {
		return 0, err
	}
	a, err := holding.Acquisition()
	return max(a.Remaining, time.Millisecond), err
}

func staleIf(err error) error {
	if err != nil && Refused(err) {
		return fmt.Errorf("%w: another acquisition has followed, or the record is gone; nothing was committed: %w", backends.ErrStale, err)
	}
	return err
}

// rollBack ends a transaction whose context may have ended.
func rollBack(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return tx.Rollback(ctx)
}
