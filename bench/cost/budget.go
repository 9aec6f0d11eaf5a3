package cost

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/wire"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Intervals are the renewals over which Count counts.
const Intervals = 10

// Requests is what one leader and those beside it ask of a store: for the very
// first acquisition in an election and for a later one, both with all that
// follows from it until the first renewal; for a renewal and a resignation; and
// of one that waits or observes, in one renewal interval. ZooKeeper's pings are
// not among them.
type Requests struct {
	First, Acquire, Renewal, Resign, Waiter, Observer float64

	Failed int64 // requests, which make more of them
}

// Count counts the requests of this repository's library on a store, each
// candidate through a proxy of its own.
func Count(ctx context.Context, s *stores.Store, ttl time.Duration) (r Requests, err error) {
	var failed atomic.Int64
	renewed := make(chan struct{}, 1000)
	library := peers.Ours(s.Kind, &elector.Trace{
		Request: func(_ context.Context, r elector.RequestInfo) {
			if r.Err != nil && r.Op != "watch" && r.Op != "watch-presence" { // these end in no other way
				failed.Add(1)
			}
		},
		Renewed: func(context.Context, elector.LeaseInfo) { renewed <- struct{}{} },
	})
	u := &subject{store: s, library: library, o: Options{TTL: ttl}, prefix: fmt.Sprintf("budget_%d", time.Now().UnixMilli())}
	election, err := u.newElection(ctx)
	if err != nil {
		return r, err
	}
	way, err := u.proxy()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, way.Close()) }()
	leader, err := u.open(ctx, election, way.Address())
	if err != nil {
		return r, err
	}
	defer leader.Close()
	if err := quiet(ctx, ttl, way); err != nil {
		return r, err
	}

	// renewals lets some pass; the first ones are over before counting starts.
	renewals := func(n int) error {
		for range n {
			select {
			case <-renewed:
			case <-time.After(ttl):
				return errors.New("the leader does not renew, the machine may be too slow to count on")
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return stillLeads(leader)
	}
	// during counts what goes one way while f runs.
	during := func(way *wire.Proxy, f func() error) (float64, error) {
		before := way.Counts()
		err := f()
		c := way.Counts().Since(before)
		return float64(c.Requests - c.Pings), err
	}
	acquire := func() error { return errors.Join(campaign(ctx, leader), renewals(1)) }
	ten := func() error { return renewals(Intervals) }
	// beside counts one that waits or observes.
	beside := func(start func(context.Context, peers.Candidate)) (n float64, err error) {
		way, err := u.proxy()
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, way.Close()) }()
		c, err := u.open(ctx, election, way.Address())
		if err != nil {
			return 0, err
		}
		defer c.Close()
		idling, stop := context.WithCancel(ctx)
		defer stop()
		go start(idling, c)
		if err := renewals(3); err != nil {
			return 0, err
		}
		return during(way, ten)
	}

	if r.First, err = during(way, acquire); err != nil {
		return r, fmt.Errorf("the first acquisition: %w", err)
	}
	if r.Renewal, err = during(way, ten); err != nil {
		return r, fmt.Errorf("renewing: %w", err)
	}
	if r.Waiter, err = beside(func(ctx context.Context, c peers.Candidate) { c.Campaign(ctx) }); err != nil {
		return r, fmt.Errorf("waiting: %w", err)
	}
	if r.Observer, err = beside(func(ctx context.Context, c peers.Candidate) { c.(observer).Observe(ctx, func() {}) }); err != nil {
		return r, fmt.Errorf("observing: %w", err)
	}
	if r.Resign, err = during(way, func() error { return resign(ctx, leader) }); err != nil {
		return r, err
	}
	if r.Acquire, err = during(way, acquire); err != nil {
		return r, fmt.Errorf("an uncontended acquisition: %w", err)
	}
	r.First, r.Acquire = r.First-1, r.Acquire-1 // one is the renewal
	r.Renewal, r.Waiter, r.Observer = r.Renewal/Intervals, r.Waiter/Intervals, r.Observer/Intervals
	r.Failed = failed.Load()
	return r, resign(ctx, leader)
}
