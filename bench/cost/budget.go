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
	m := &meter{renewed: renewed, subject: &subject{
		store: s, library: library, o: Options{TTL: ttl}, prefix: fmt.Sprintf("budget_%d", time.Now().UnixMilli()),
	}}
	if m.election, err = m.newElection(ctx); err != nil {
		return r, err
	}
	err = m.through(ctx, m.election, func(leader peers.Candidate, way *wire.Proxy) error {
		if err := quiet(ctx, ttl, way); err != nil {
			return err
		}
		m.leader = leader
		return m.count(ctx, way, &r)
	})
	r.Failed = failed.Load()
	return r, err
}

// A meter counts beside a leader that renews.
type meter struct {
	*subject
	election string
	leader   peers.Candidate
	renewed  <-chan struct{}
}

func (m *meter) count(ctx context.Context, way *wire.Proxy, r *Requests) (err error) {
	acquire := func() error {
		for len(m.renewed) > 0 {
			<-m.renewed // of an earlier lease
		}
		return errors.Join(campaign(ctx, m.leader), m.renewals(ctx, 1))
	}
	if r.First, err = during(way, acquire); err != nil {
		return fmt.Errorf("the first acquisition: %w", err)
	}
	if r.Renewal, err = during(way, func() error { return m.renewals(ctx, Intervals) }); err != nil {
		return fmt.Errorf("renewing: %w", err)
	}
	if r.Waiter, err = m.beside(ctx, func(ctx context.Context, c peers.Candidate) { c.Campaign(ctx) }); err != nil {
		return fmt.Errorf("waiting: %w", err)
	}
	if r.Observer, err = m.beside(ctx, func(ctx context.Context, c peers.Candidate) { c.(observer).Observe(ctx, func() {}) }); err != nil {
		return fmt.Errorf("observing: %w", err)
	}
	if r.Resign, err = during(way, func() error { return resign(ctx, m.leader) }); err != nil {
		return err
	}
	if r.Acquire, err = during(way, acquire); err != nil {
		return fmt.Errorf("an uncontended acquisition: %w", err)
	}
	r.First, r.Acquire = r.First-1, r.Acquire-1 // one is the renewal
	r.Renewal, r.Waiter, r.Observer = r.Renewal/Intervals, r.Waiter/Intervals, r.Observer/Intervals
	return resign(ctx, m.leader)
}

// during counts what goes one way while f runs.
func during(way *wire.Proxy, f func() error) (float64, error) {
	before := way.Counts()
	err := f()
	c := way.Counts().Since(before)
	return float64(c.Requests - c.Pings), err
}

// renewals lets some pass.
func (m *meter) renewals(ctx context.Context, n int) error {
	for range n {
		select {
		case <-m.renewed:
		case <-time.After(m.o.TTL):
			return errors.New("the leader does not renew, the machine may be too slow to count on")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return stillLeads(m.leader)
}

// beside counts one that waits or observes, once a few renewals are over.
func (m *meter) beside(ctx context.Context, start func(context.Context, peers.Candidate)) (n float64, err error) {
	err = m.through(ctx, m.election, func(c peers.Candidate, way *wire.Proxy) error {
		idling, stop := context.WithCancel(ctx)
		defer stop()
		go start(idling, c)
		if err := m.renewals(ctx, 3); err != nil {
			return err
		}
		n, err = during(way, func() error { return m.renewals(ctx, Intervals) })
		return err
	})
	return n, err
}
