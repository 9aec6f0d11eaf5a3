// Package fenced compares guarded writes with plain ones, side by side on the same
// store: the requests of each, counted on the wire, and how long they take, in pairs
// that take turns.
package fenced

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/bench/wire"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/internal/proof/transactor"
)

const (
	warmUp = 20
	counts = 20  // writes of each kind whose requests are counted
	pairs  = 300 // that are timed
)

// A Result is what a guarded write costs, and a plain one.
type Result struct {
	What           string
	Plain, Guarded Cost
	Ratio          float64 // of the medians
}

// A Cost is that of one write.
type Cost struct {
	Requests float64
	Median   time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("%-42s %6.2f → %.2f requests %10v → %10v  × %.2f", r.What,
		r.Plain.Requests, r.Guarded.Requests, r.Plain.Median.Round(time.Microsecond), r.Guarded.Median.Round(time.Microsecond), r.Ratio)
}

// A pair is a plain write and a guarded one of the same content.
type pair struct {
	what           string
	plain, guarded func(context.Context, int) error
}

// Measure measures on a store under a lease of an election that it makes there.
func Measure(ctx context.Context, s *stores.Store) (results []Result, err error) {
	address := s.Address
	if s.Kind == stores.DynamoDB && s.PID != 0 {
		x := transactor.Start(address)
		defer x.Stop()
		address = x.Address()
	}
	e, err := elector.Open(ctx, s.Through(address), fmt.Sprintf("fenced_%d", time.Now().UnixMilli()), &elector.Options{TTL: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	lease, err := e.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	way, err := wire.Start(s.Kind, address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, way.Close()) }()
	on := &target{store: s, lease: lease, url: s.Through(way.Address()), address: way.Address()}
	defer on.close()
	all, err := map[string]func(context.Context, *target) ([]pair, error){
		stores.Etcd: etcds, stores.ZooKeeper: zookeepers, stores.Postgres: postgreses, stores.DynamoDB: dynamodbs, stores.GCS: gcses, stores.AzureBlob: azureBlobs, stores.Consul: consuls, stores.MySQL: mysqls, stores.NATS: natses, stores.S3: s3s, stores.Redis: redises,
	}[s.Kind](ctx, on)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		r, err := p.measure(ctx, func() int64 { n := way.Counts(); return n.Requests - n.Pings })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.what, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// A target is where a store's pairs write: through the way on which is counted.
type target struct {
	store        *stores.Store
	lease        *elector.Lease
	url, address string
	closers      []func()
}

func (t *target) close() {
	for _, c := range slices.Backward(t.closers) {
		c()
	}
}

func (p pair) measure(ctx context.Context, requests func() int64) (Result, error) {
	r := Result{What: p.what}
	number := 0
	one := func(write func(context.Context, int) error) (time.Duration, error) {
		number++
		begun := time.Now()
		err := write(ctx, number)
		return time.Since(begun), err
	}
	for _, c := range []struct {
		cost  *Cost
		write func(context.Context, int) error
	}{{&r.Plain, p.plain}, {&r.Guarded, p.guarded}} {
		var before int64
		for i := range warmUp + counts {
			if i == warmUp {
				before = requests()
			}
			if _, err := one(c.write); err != nil {
				return r, err
			}
		}
		c.cost.Requests = float64(requests()-before) / counts
	}
	var plain, guarded []time.Duration
	for i := range pairs {
		for j := range 2 {
			write, took := p.plain, &plain
			if (i+j)%2 == 1 {
				write, took = p.guarded, &guarded
			}
			d, err := one(write)
			if err != nil {
				return r, err
			}
			*took = append(*took, d)
		}
	}
	r.Plain.Median, r.Guarded.Median = median(plain), median(guarded)
	r.Ratio = float64(r.Guarded.Median) / float64(r.Plain.Median)
	return r, nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// InProcess returns how long a call of elector.Fence takes around a write that does
// nothing.
func InProcess(ctx context.Context) (time.Duration, error) {
	const calls = 1000
	var fence elector.Fence
	var all []time.Duration
	for range pairs {
		begun := time.Now()
		for range calls {
			if err := fence.Do(ctx, "resource", 1, func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
		}
		all = append(all, time.Since(begun)/calls)
	}
	return median(all), nil
}
