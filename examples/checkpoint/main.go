// Checkpoint shows how a leader's work survives it: each step and the note that it
// is done are one transaction, so that the next leader continues where the last one
// stopped.
//
//	POSTGRES_URL=postgres://user:password@localhost/database go run ./examples/checkpoint
//
// The data is in PostgreSQL. The election is there too, or on the store of ELECTOR_URL,
// such as file:///tmp/checkpoint or etcd://localhost: the code is the same. Three small
// tables are created in the database, and that of the election.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/fence/fencesql"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("POSTGRES_URL"), os.Getenv("ELECTOR_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "checkpoint:", err)
		os.Exit(1)
	}
}

// last is the number of the last invoice.
const last = 10

// A ledger is the data, next to a table of fencing tokens.
type ledger struct {
	*sql.DB
	fence *fencesql.Table
}

// bookNext books the next invoice and moves the checkpoint, in one transaction.
func (l ledger) bookNext(ctx context.Context, lease *elector.Lease) (booked int, err error) {
	err = l.fence.Transact(ctx, l.DB, lease, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "select booked + 1 from checkpoint").Scan(&booked); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "insert into checkpoint_ledger (invoice) values ($1)", booked); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update checkpoint set booked = $1", booked)
		return err
	})
	return booked, err
}

var tables = []string{
	"create table if not exists checkpoint (booked int not null)",
	"create table if not exists checkpoint_ledger (invoice int not null)",
	"truncate checkpoint, checkpoint_ledger",
	"insert into checkpoint values (0)",
}

func run(ctx context.Context, data, store string, out io.Writer) error {
	if data == "" {
		return errors.New("POSTGRES_URL is not set; name a database, as in postgres://user:password@localhost/database")
	}
	fence, err := fencesql.New(fencesql.PostgreSQL, "checkpoint_fences")
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", data)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range append(tables, fence.CreateSQL()) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	// Two candidates one after the other, which would be two processes.
	for _, candidate := range []struct {
		id   string
		upTo int // where it is stopped
	}{{"first", 4}, {"second", last}} {
		if err := lead(ctx, cmp.Or(store, creating(data)), candidate.id, candidate.upTo, ledger{db, fence}, out); err != nil {
			return err
		}
	}
	var rows, different int
	if err := db.QueryRowContext(ctx, "select count(*), count(distinct invoice) from checkpoint_ledger").Scan(&rows, &different); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d invoices, %d bookings\n", different, rows)
	if rows != last || different != last {
		return errors.New("an invoice was booked twice, or not at all")
	}
	return nil
}

func lead(ctx context.Context, url, id string, upTo int, l ledger, out io.Writer) error {
	e, err := elector.Open(ctx, url, "bookkeeper", &elector.Options{ID: id})
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		for booked := 0; booked < upTo; {
			if booked, err = l.bookNext(ctx, lease); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: books invoice %d\n", id, booked)
		}
		return nil
	})
}

// creating is the URL of the elections in a database. Their table is created if it is
// missing, as one start of a service does; the others leave that out.
func creating(url string) string {
	if strings.Contains(url, "?") {
		return url + "&create=true"
	}
	return url + "?create=true"
}
