// Fencedwriter shows why a leader sends its fencing token with each write: a
// leader that is late has its write refused by the database.
//
//	POSTGRES_URL=postgres://user:password@localhost/database go run ./examples/fencedwriter
//
// POSTGRES_URL names the database with the row to protect; a small table is
// created there. ELECTOR_URL names the store of the election, the same database
// by default.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/memory"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/examples/fencedwriter/account"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	database := os.Getenv("POSTGRES_URL")
	if err := run(ctx, cmp.Or(os.Getenv("ELECTOR_URL"), database), database, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencedwriter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store, database string, out io.Writer) error {
	if database == "" {
		return errors.New("POSTGRES_URL is not set; name a database, as in postgres://user:password@localhost/database")
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := account.Create(ctx, pool, "till"); err != nil {
		return err
	}
	// Two candidates, which would be two processes on two machines.
	first, err := elector.Open(ctx, store, "cashier", &elector.Options{ID: "first"})
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := elector.Open(ctx, store, "cashier", &elector.Options{ID: "second"})
	if err != nil {
		return err
	}
	defer second.Close()

	lease, err := first.Campaign(ctx)
	if err != nil {
		return err
	}
	if err := account.Transfer(ctx, pool, lease.Token(), "till", 500); err != nil {
		return err
	}
	fmt.Fprintln(out, "first:  leads and puts 5.00 into the till")

	// It starts another transfer: reads the balance, computes …
	if err := lease.Check(); err != nil {
		return err
	}
	balance, err := account.Read(ctx, pool, lease.Token(), "till")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "first:  finds %d.%02d, wants to put in 3.00, and is paused\n", balance/100, balance%100)

	// … and is paused for so long that somebody else leads. To save us the
	// wait for its TTL, it resigns.
	if err := lease.Resign(ctx); err != nil {
		return err
	}
	next, err := second.Campaign(ctx)
	if err != nil {
		return err
	}
	if err := account.Transfer(ctx, pool, next.Token(), "till", 200); err != nil {
		return err
	}
	fmt.Fprintln(out, "second: leads and puts 2.00 into the till")

	// The first one goes on where it was. Without the token its write would
	// now make the 2.00 disappear.
	err = account.Write(ctx, pool, lease.Token(), "till", balance+300)
	if !errors.Is(err, elector.ErrStale) {
		return fmt.Errorf("the stale write was not refused as such: %v", err)
	}
	fmt.Fprintln(out, "first:  goes on, and is refused:", err)
	after, err := account.Read(ctx, pool, next.Token(), "till")
	if err != nil {
		return err
	}
	if after != balance+200 {
		return fmt.Errorf("the till has %d cents, not %d", after, balance+200)
	}
	fmt.Fprintf(out, "second: finds %d.%02d\n", after/100, after%100)
	return nil
}
