package fenced

import (
	"context"
	"database/sql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencesql"
)

// fenceSQL returns the pairs of fencesql.Transact: with the election in the same
// database, and on another store.
func fenceSQL(ctx context.Context, t *target, db *sql.DB, dialect fencesql.Dialect, update string) ([]pair, error) {
	table, err := fencesql.New(dialect, "fences")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, table.CreateSQL()); err != nil {
		return nil, err
	}
	under := func(lease backends.Lease) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			return table.Transact(ctx, db, lease, func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, update, n); return err })
		}
	}
	return []pair{
		{"fencesql.Transact, the election beside it", plainly(db, update), under(t.lease)},
		{"fencesql.Transact, the election elsewhere", plainly(db, update), under(through{t.lease, memory.New()})},
	}, nil
}

// plainly returns a transaction of one statement.
func plainly(db *sql.DB, update string) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after a commit
		if _, err := tx.ExecContext(ctx, update, n); err != nil {
			return err
		}
		return tx.Commit()
	}
}
