package fencesql_test

import (
	"context"
	"database/sql"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencesql"
)

// A worker books invoices into the database. The election may be on any store.
func ExampleTable_Transact() {
	var db *sql.DB         // opened with a driver of your choice
	var e *elector.Elector // opened with ELECTOR_URL
	fence, err := fencesql.New(fencesql.PostgreSQL, "billing.fences")
	if err != nil {
		panic(err)
	}
	// A migration executes fence.CreateSQL().
	book := func(ctx context.Context, lease *elector.Lease) error {
		return fence.Transact(ctx, db, lease, func(tx *sql.Tx) error {
			var next int
			if err := tx.QueryRowContext(ctx, "select booked + 1 from checkpoint").Scan(&next); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "update checkpoint set booked = $1", next)
			return err
		})
	}
	worker := func(ctx context.Context, lease *elector.Lease) error {
		for {
			if err := book(ctx, lease); err != nil {
				return err // ErrStale: another candidate leads
			}
		}
	}
	_ = func(ctx context.Context) error { return e.Run(ctx, worker) }
}
