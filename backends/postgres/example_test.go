package postgres_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/postgres"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "postgres://app:secret@db.example/app", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// A worker changes data in the election's database. However late it commits, it cannot
// undo what a later leader has written.
func ExampleTransact() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app:secret@db.example/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	e, err := elector.Open(ctx, "postgres://app:secret@db.example/app", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		return postgres.Transact(ctx, pool, lease, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "update account set cents = cents + 500 where id = 7")
			return err
		})
	})
	if err != nil {
		log.Fatal(err)
	}
}
