package electortest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/partition"
)

// The code of docs/testing.md about groups.

// A consumer handles an order of each of its partitions in a second, and saves where it is.
type consumer struct {
	load func(partition int) (orders int)
	save func(lease *partition.Lease, orders int) error
}

func (c *consumer) work(ctx context.Context, lease *partition.Lease) error {
	orders := c.load(lease.Partition())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := lease.Check(); err != nil {
			return err
		}
		orders++
		if err := c.save(lease, orders); err != nil {
			return err
		}
	}
}

// A table has the progress of each partition. It refuses what an old owner writes, and an
// order that is left out or handled twice.
type table struct {
	fence  elector.Fence
	mutex  sync.Mutex
	orders map[int]int
}

func (t *table) load(partition int) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.orders[partition]
}

func (t *table) save(lease *partition.Lease, orders int) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err := t.fence.Admit(context.Background(), lease.Election(), lease.Token()); err != nil {
		return err
	}
	n := lease.Partition()
	if orders != t.orders[n]+1 {
		return fmt.Errorf("partition %d: order %d comes after %d", n, orders, t.orders[n])
	}
	t.orders[n] = orders
	return nil
}

func TestConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := table{orders: map[int]int{}}
		c := consumer{db.load, db.save}
		g := electortest.NewGroup(t, "orders", &partition.Options{
			Partitions: 8,
			Trace: &partition.Trace{Failed: func(_ context.Context, i partition.LeaseInfo) {
				t.Errorf("a worker failed: %v", i.Err)
			}},
		})

		// handles checks how many orders the group handles in a minute.
		handles := func(when string, least, most int) {
			t.Helper()
			n := 0
			for partition := range 8 {
				n -= db.load(partition)
			}
			time.Sleep(time.Minute)
			for partition := range 8 {
				n += db.load(partition)
			}
			if n < least || n > most {
				t.Errorf("%s: %d orders in a minute, want %d to %d", when, n, least, most)
			}
		}

		a, b := g.Join("a", c.work), g.Join("b", c.work)
		g.Balance()
		handles("two members", 8*59, 8*61)

		b.Crash()
		handles("a crash", 4*59+4*30, 4*61+4*50) // b's partitions wait for 16.5 s, about
		g.Balance()
		handles("after the crash", 8*59, 8*61)

		d := g.Join("d", c.work)
		g.Balance()
		if n := len(d.Owns()); n != 4 {
			t.Errorf("a newcomer owns %d of 8 partitions", n)
		}
		if err := a.Leave(); err != nil {
			t.Errorf("a deploy: %v", err)
		}
		handles("a deploy", 8*59, 8*61)

		d.SlowDrain(10 * time.Second)
		e := g.Join("e", c.work)
		g.Balance()
		e.Outage()
		g.Balance()
		if n := len(e.Owns()); n != 0 {
			t.Errorf("without the store it owns %d partitions", n)
		}
		e.Restore()
		g.Balance()
		handles("after the outage", 8*59, 8*61)

		e.Pause(time.Minute)
		g.Balance()
		handles("after a pause", 8*59, 8*61)
	})
}

func TestLateOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := table{orders: map[int]int{}}
		saving, thawed, result := make(chan bool), make(chan bool), make(chan error)
		frozen := consumer{db.load, func(lease *partition.Lease, orders int) error {
			saving <- true
			<-thawed
			err := db.save(lease, orders)
			result <- err
			return err
		}}
		other := consumer{db.load, db.save}
		g := electortest.NewGroup(t, "orders", &partition.Options{Partitions: 1})
		a := g.Join("a", frozen.work)
		<-saving // the worker has checked its lease, and has not yet saved
		g.Join("b", other.work)
		a.Pause(time.Minute) // b takes over meanwhile
		close(thawed)
		if err := <-result; !errors.Is(err, elector.ErrStale) {
			t.Errorf("the late order: %v", err)
		}
	})
}
