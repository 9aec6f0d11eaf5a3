package mysql_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/mysql"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "mysql://app:secret@db.example/app?create=true", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// A worker changes data on the election's server. However late it commits, it cannot
// undo what a later leader has written.
func ExampleTransact() {
	ctx := context.Background()
	db, err := sql.Open("mysql", "app:secret@tcp(db.example)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	e, err := elector.Open(ctx, "mysql://app:secret@db.example/app", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		return mysql.Transact(ctx, db, lease, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "update account set cents = cents + 500 where id = 7")
			return err
		})
	})
	if err != nil {
		log.Fatal(err)
	}
}
