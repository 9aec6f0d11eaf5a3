package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measure runs the whole programme on a store. Where that takes several records in a
// request, a second group then does some of the same with one record in each.
func measure(ctx context.Context, url string, partitions int) error {
	before := heap()
	few, err := small(ctx, url)
	if err != nil {
		return err
	}
	f := newFleet(ctx, url, "orders", partitions)
	start, err := f.starts()
	if err != nil {
		return err
	}
	f.within("KB for each partition, no stacks", float64(heap()-before-few)/float64(partitions-members)/1024, 3)
	f.rests()
	costs := []cost{start}
	for _, change := range []func(*fleet) (cost, error){(*fleet).oneJoins, (*fleet).itLeaves, (*fleet).oneCrashes, (*fleet).oneComes, (*fleet).oneIsReplaced, (*fleet).deploys} {
		c, err := change(f)
		if err != nil {
			return err
		}
		costs = append(costs, c)
	}
	d := f.all[0].meter.Describe()
	if err := f.stop(); err != nil {
		return err
	}
	if d.MaxLoads > 1 || d.MaxSwaps > 1 {
		if err := beside(ctx, url, partitions, costs); err != nil {
			return fmt.Errorf("one by one: %w", err)
		}
	}
	return errors.Join(f.failed...)
}

// small returns the memory of a group that has a partition for each process: that of
// the processes, with their clients.
func small(ctx context.Context, url string) (int64, error) {
	before := heap()
	f := newFleet(ctx, url, "small", members)
	f.beside = "small group: "
	_, err := f.starts()
	if err != nil {
		return 0, err
	}
	used := heap() - before
	return used, f.stop()
}

// beside does the first steps again with one record in a request, and prints what they cost
// beside those in batches. That is no more than a measure for these: nothing is checked.
func beside(ctx context.Context, url string, partitions int, batches []cost) error {
	f := newFleet(ctx, url, "one-by-one", partitions)
	f.oneByOne, f.beside = true, "one by one: "
	for i, change := range []func(*fleet) (cost, error){(*fleet).starts, (*fleet).oneJoins, (*fleet).itLeaves, (*fleet).oneCrashes} {
		c, err := change(f)
		if err != nil {
			return err
		}
		if i == 0 {
			f.atRest(15 * time.Second)
		}
		b := batches[i]
		fmt.Printf("  batches take %.2f of its time, while moving %.2f, and %.3f of its requests\n",
			b.took.Seconds()/c.took.Seconds(), b.moving.Seconds()/c.moving.Seconds(), b.requests/c.requests)
	}
	return f.stop()
}
