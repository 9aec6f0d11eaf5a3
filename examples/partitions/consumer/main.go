// Consumer sums orders by customer. Any number of processes share the partitions of the
// customers, and each order is counted once, whatever is killed or stopped meanwhile: the
// totals and the checkpoint change in one transaction, which only the owner can commit.
//
//	export ELECTOR_URL=postgres://user:password@localhost/database
//	go run ./examples/partitions/consumer add 10000 # orders
//	go run ./examples/partitions/consumer work      # in as many terminals as you like
//	go run ./examples/partitions/consumer check     # the totals, at any time
//
// The group and the data are in the same database. Three small tables are created there, and
// that of the group.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/partition"
)

// partitions is the same in all processes.
const partitions = 8

// batch is how many orders are counted in a transaction.
const batch = 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("ELECTOR_URL"), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, arguments []string) error {
	if url == "" {
		return errors.New("ELECTOR_URL is not set; name a database, as in postgres://user:password@localhost/database")
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	switch {
	case len(arguments) == 2 && arguments[0] == "add":
		orders, err := strconv.Atoi(arguments[1])
		if err != nil {
			return err
		}
		return add(ctx, pool, orders)
	case len(arguments) == 1 && arguments[0] == "work":
		return work(ctx, url, pool)
	case len(arguments) == 1 && arguments[0] == "check":
		return check(ctx, pool)
	}
	return errors.New("usage: consumer add ORDERS | consumer work | consumer check")
}

// work counts the orders of the partitions that this process owns, until ctx ends.
func work(ctx context.Context, url string, pool *pgxpool.Pool) error {
	g, err := partition.Join(ctx, creating(url), "customers", &partition.Options{
		Partitions: partitions,
		Elector:    elector.Options{TTL: 3 * time.Second}, // for impatient readers; leave it out
	})
	if err != nil {
		return err
	}
	return errors.Join(g.Run(ctx, func(ctx context.Context, lease *partition.Lease) error {
		for ctx.Err() == nil {
			counted, err := count(ctx, pool, lease)
			if err != nil {
				return err // it is called again, unless the partition moves
			}
			if counted == 0 {
				select {
				case <-time.After(100 * time.Millisecond): // for more orders
				case <-ctx.Done():
				}
			}
		}
		return nil
	}), g.Close())
}

// count counts the next orders of a partition, and moves its checkpoint.
func count(ctx context.Context, pool *pgxpool.Pool, lease *partition.Lease) (counted int, err error) {
	err = postgres.Transact(ctx, pool, lease, func(tx pgx.Tx) error {
		var last int64
		if err := tx.QueryRow(ctx, next, lease.Partition(), batch).Scan(&counted, &last); err != nil || counted == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, sum, lease.Partition(), last); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update consumer_checkpoint set id = $2 where partition = $1", lease.Partition(), last)
		return err
	})
	return counted, err
}

// Next and sum read after the checkpoint. That needs orders that appear in the order of
// their ids: here one process adds them, one transaction after the other.
const (
	next = `
select count(*), coalesce(max(id), 0) from (
	select o.id from consumer_order o join consumer_checkpoint c using (partition)
	where partition = $1 and o.id > c.id order by o.id limit $2
) batch`
	sum = `
insert into consumer_total
	select customer, sum(cents) from consumer_order o join consumer_checkpoint c using (partition)
	where partition = $1 and o.id > c.id and o.id <= $2 group by customer
on conflict (customer) do update set cents = consumer_total.cents + excluded.cents`
)

// creating is the URL of the elections in a database. Their table is created if it is
// missing, as one start of a service does; the others leave that out.
func creating(url string) string {
	if strings.Contains(url, "?") {
		return url + "&create=true"
	}
	return url + "?create=true"
}
