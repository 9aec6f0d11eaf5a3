// Checkpoint shows how a leader's work survives it: each step and the note that it
// is done are one transaction, so that the next leader continues where the last one
// stopped.
//
//	POSTGRES_URL=postgres://user:password@localhost/database go run ./examples/checkpoint
//
// The election and the data are in the same database. Two small tables are created
// there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("POSTGRES_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "checkpoint:", err)
		os.Exit(1)
	}
}

// last is the number of the last invoice.
const last = 10

// bookNext books the next invoice and moves the checkpoint, in one transaction.
func bookNext(ctx context.Context, pool *pgxpool.Pool, lease *elector.Lease) (booked int, err error) {
	err = postgres.Transact(ctx, pool, lease, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "select booked + 1 from checkpoint").Scan(&booked); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into checkpoint_ledger (invoice) values ($1)", booked); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update checkpoint set booked = $1", booked)
		return err
	})
	return booked, err
}

const tables = `
create table if not exists checkpoint (booked int not null);
create table if not exists checkpoint_ledger (invoice int not null);
truncate checkpoint, checkpoint_ledger;
insert into checkpoint values (0)`

func run(ctx context.Context, url string, out io.Writer) error {
	if url == "" {
		return errors.New("POSTGRES_URL is not set; name a database, as in postgres://user:password@localhost/database")
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	// Two candidates one after the other, which would be two processes.
	for _, candidate := range []struct {
		id   string
		upTo int // where it is stopped
	}{{"first", 4}, {"second", last}} {
		if err := lead(ctx, url, candidate.id, candidate.upTo, pool, out); err != nil {
			return err
		}
	}
	var rows, different int
	if err := pool.QueryRow(ctx, "select count(*), count(distinct invoice) from checkpoint_ledger").Scan(&rows, &different); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d invoices, %d bookings\n", different, rows)
	if rows != last || different != last {
		return errors.New("an invoice was booked twice, or not at all")
	}
	return nil
}

func lead(ctx context.Context, url, id string, upTo int, pool *pgxpool.Pool, out io.Writer) error {
	e, err := elector.Open(ctx, url, "bookkeeper", &elector.Options{ID: id})
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		for booked := 0; booked < upTo; {
			if booked, err = bookNext(ctx, pool, lease); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: books invoice %d\n", id, booked)
		}
		return nil
	})
}
