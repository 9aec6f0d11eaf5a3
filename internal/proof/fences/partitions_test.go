package fences

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/partition"
)

// A resource for each partition: the table refuses the token of a partition's earlier
// owner, whatever tokens other partitions have.
func TestPartitions(t *testing.T) {
	d := sqlite(t)
	table, store := d.table(t, "fences"), memory.NewStore()
	const count = 2
	p := d.place(t)
	owns := func(id string) (leases [count]*partition.Lease, believed [count]lease) {
		g, err := partition.New(store.Handle(), "orders", &partition.Options{Partitions: count, Elector: elector.Options{ID: id, TTL: time.Second, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		owned, done := make(chan *partition.Lease, 100), make(chan error, 1)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
				owned <- l
				<-ctx.Done()
				return nil
			})
		}()
		defer func() {
			stop()
			if err := errors.Join(<-done, g.Close()); err != nil {
				t.Error(err)
			}
		}()
		for range count {
			select {
			case l := <-owned:
				leases[l.Partition()] = l
				enter(t, d, table, l, nil)
				p.succeeds(id+"-"+l.Election(), l)
				a, err := l.Acquisition()
				p.must(err)
				believed[l.Partition()] = lease{a, nil}
			case <-time.After(time.Minute):
				t.Fatalf("%s does not own all partitions", id)
			}
		}
		return leases, believed
	}
	first, paused := owns("a")
	second, latest := owns("b")
	for n := range count {
		enter(t, d, table, first[n], elector.ErrStale)
		enter(t, d, table, second[n], nil)
		p.stale(fmt.Sprint("paused-", n), paused[n])
		p.succeeds(fmt.Sprint("latest-", n), latest[n])
	}
}

// enter makes a transaction with the token of a lease that was checked before.
func enter(t *testing.T, d database, table *fencesql.Table, l *partition.Lease, want error) {
	t.Helper()
	err := write(t.Context(), d.DB, table, fmt.Sprintf("orders/%d", l.Partition()), l.Token(), true)
	if !errors.Is(err, want) {
		t.Errorf("%v: %v, want %v", l, err, want)
	}
}
