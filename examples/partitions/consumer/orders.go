package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/partition"
)

const tables = `
create table if not exists consumer_order (id bigserial primary key, partition int not null, customer text not null, cents bigint not null);
create index if not exists consumer_order_partition on consumer_order (partition, id);
create table if not exists consumer_checkpoint (partition int primary key, id bigint not null);
create table if not exists consumer_total (customer text primary key, cents bigint not null);`

// add adds orders of some customers. The partition of an order is that of its customer.
func add(ctx context.Context, pool *pgxpool.Pool, orders int) error {
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "insert into consumer_checkpoint select n, 0 from generate_series(0, $1::int - 1) n on conflict do nothing", partitions); err != nil {
		return err
	}
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"consumer_order"}, []string{"partition", "customer", "cents"}, pgx.CopyFromSlice(orders, func(i int) ([]any, error) {
		customer := fmt.Sprintf("customer-%d", i%100)
		return []any{partition.Of(customer, partitions), customer, 1 + i%997}, nil
	}))
	return err
}

// check prints how many orders are counted, and fails if a total is not the sum of those.
func check(ctx context.Context, pool *pgxpool.Pool) error {
	var orders, counted, wrong int
	// In one statement, so that workers change nothing meanwhile.
	err := pool.QueryRow(ctx, `
with customer as (
	select customer, count(*) orders, count(*) filter (where o.id <= c.id) counted, coalesce(sum(cents) filter (where o.id <= c.id), 0) cents
	from consumer_order o join consumer_checkpoint c using (partition) group by customer
)
select sum(orders), sum(counted), count(*) filter (where customer.cents <> coalesce(t.cents, 0))
from customer left join consumer_total t using (customer)`).Scan(&orders, &counted, &wrong)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d orders are counted, %d totals are wrong\n", counted, orders, wrong)
	if wrong > 0 {
		return errors.New("an order was counted twice, or not at all")
	}
	return nil
}
