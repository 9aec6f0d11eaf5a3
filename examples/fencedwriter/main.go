// Fencedwriter shows why a leader guards its writes: one that was paused comes back
// late, and the database refuses its write.
//
//	POSTGRES_URL=postgres://user:password@localhost/database go run ./examples/fencedwriter
//
// The election and the data are in the same database. Two small tables are created there.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("POSTGRES_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencedwriter:", err)
		os.Exit(1)
	}
}

// deposit puts cents into the till: it reads the balance and writes a new one. It
// commits only while the lease is the latest.
func deposit(ctx context.Context, pool *pgxpool.Pool, lease backends.Lease, cents int, pause func() error) error {
	return postgres.Transact(ctx, pool, lease, func(tx pgx.Tx) error {
		var balance int
		if err := tx.QueryRow(ctx, "select cents from fencedwriter_till").Scan(&balance); err != nil {
			return err
		}
		if err := pause(); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update fencedwriter_till set cents = $1", balance+cents)
		return err
	})
}

// depositDB is deposit with database/sql.
func depositDB(ctx context.Context, db *sql.DB, lease backends.Lease, cents int) error {
	return postgres.TransactDB(ctx, db, lease, func(tx *sql.Tx) error {
		var balance int
		if err := tx.QueryRowContext(ctx, "select cents from fencedwriter_till").Scan(&balance); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update fencedwriter_till set cents = $1", balance+cents)
		return err
	})
}

// A paused leader takes its lease for valid: it has looked at the clock for the last
// time before the pause. Guards look themselves, so a program does not need this.
type paused struct{ at backends.Acquisition }

func (p paused) Acquisition() (backends.Acquisition, error) { return p.at, nil }

func run(ctx context.Context, url string, out io.Writer) error {
	if url == "" {
		return errors.New("POSTGRES_URL is not set; name a database, as in postgres://user:password@localhost/database")
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := pool.Exec(ctx, "create table if not exists fencedwriter_till (cents int not null); truncate fencedwriter_till; insert into fencedwriter_till values (0)"); err != nil {
		return err
	}
	// Two candidates, which would be two processes on two machines.
	first, err := elector.Open(ctx, creating(url), "cashier", &elector.Options{ID: "first"})
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := elector.Open(ctx, creating(url), "cashier", &elector.Options{ID: "second"})
	if err != nil {
		return err
	}
	defer second.Close()

	lease, err := first.Campaign(ctx)
	if err != nil {
		return err
	}
	if err := deposit(ctx, pool, lease, 500, func() error { return nil }); err != nil {
		return err
	}
	fmt.Fprintln(out, "first:  leads and puts 5.00 into the till")

	before, err := lease.Acquisition()
	if err != nil {
		return err
	}
	err = deposit(ctx, pool, paused{before}, 300, func() error {
		fmt.Fprintln(out, "first:  finds 5.00, wants to put in 3.00, and is paused")
		// The pause lasts until another candidate leads. To save us the wait for
		// the TTL, the first one resigns.
		if err := lease.Release(ctx); err != nil {
			return err
		}
		next, err := second.Campaign(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "second: leads and puts 2.00 into the till")
		return depositDB(ctx, db, next, 200)
	})
	// Without the guard the 2.00 would be gone now.
	if !errors.Is(err, elector.ErrStale) {
		return fmt.Errorf("the stale write was not refused as such: %v", err)
	}
	fmt.Fprintln(out, "first:  goes on, and is refused:", err)

	var cents int
	if err := pool.QueryRow(ctx, "select cents from fencedwriter_till").Scan(&cents); err != nil {
		return err
	}
	if cents != 700 {
		return fmt.Errorf("the till has %d cents, not 700", cents)
	}
	fmt.Fprintln(out, "second: finds 7.00")
	return nil
}

// creating is the URL of the elections in a database. Their table is created if it is
// missing, as one start of a service does; the others leave that out.
func creating(url string) string {
	if strings.Contains(url, "?") {
		return url + "&create=true"
	}
	return url + "?create=true"
}
