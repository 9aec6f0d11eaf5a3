package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
)

type handover struct {
	writes       float64 // for each release, by all waiters together
	median, most time.Duration
}

// handovers lets a leader resign in front of waiters, which share one client,
// and measures until one of them leads.
func handovers(ctx context.Context, s *counted, waiters, rounds int) (handover, error) {
	c, err := s.open(ctx)
	if err != nil {
		return handover{}, err
	}
	defer c.close()
	ctx, stop := context.WithCancel(ctx)
	election := fmt.Sprintf("handover-%d", waiters)
	var writes atomic.Int64
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	leases := make(chan *elector.Lease)
	rejoin := make(chan struct{}) // for the one that resigned, once another leads
	audience := newAudience(waiters + 1)
	for i := range waiters + 1 {
		e, err := candidate(c.backend, election, &elector.Trace{
			Request: func(_ context.Context, r elector.RequestInfo) {
				if r.Op == "swap" {
					writes.Add(1)
				}
			},
			Observed: func(_ context.Context, o elector.LeaderInfo) { audience.sees(i, o.Leader) },
		})
		if err != nil {
			return handover{}, err
		}
		waiting.Go(func() {
			defer e.Close()
			for {
				l, err := e.Campaign(ctx)
				if err != nil {
					return
				}
				select {
				case leases <- l:
				case <-ctx.Done():
					return
				}
				select {
				case <-rejoin:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	next := func() (*elector.Lease, error) {
		select {
		case l := <-leases:
			return l, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}

	var h handover
	var took []time.Duration
	lease, err := next()
	if err != nil {
		return h, err
	}
	for range rounds {
		// The one that resigned queues up again, and every waiter has to know
		// who leads now.
		if err := audience.know(ctx, lease.Token()); err != nil {
			return h, err
		}
		if s.polled {
			// Leaders do not resign in step with their waiters' reads.
			sometime, cancel := context.WithTimeout(ctx, rand.N(ttl/3))
			<-sometime.Done()
			cancel()
		}
		before := writes.Load()
		start := time.Now()
		released := make(chan error, 1)
		go func() { released <- lease.Resign(ctx) }()
		successor, err := next()
		if err != nil {
			return h, err
		}
		took = append(took, time.Since(start))
		select {
		case rejoin <- struct{}{}:
		case <-ctx.Done():
			return h, context.Cause(ctx)
		}
		if err := <-released; err != nil {
			return h, err
		}
		if successor.Token() <= lease.Token() {
			return h, fmt.Errorf("token %d after %d", successor.Token(), lease.Token())
		}
		h.writes += float64(writes.Load() - before - 1) // one is the release
		lease = successor
	}
	slices.Sort(took)
	h.writes /= float64(rounds)
	h.median, h.most = took[len(took)/2], took[len(took)-1]
	return h, nil
}

// An audience knows what each candidate has seen last.
type audience struct {
	mutex   sync.Mutex
	seen    []elector.Token
	changed chan struct{}
}

func newAudience(n int) *audience {
	return &audience{seen: make([]elector.Token, n), changed: make(chan struct{}, 1)}
}

func (a *audience) sees(i int, l elector.Leader) {
	if l.ID == "" {
		return // resigned, under the same token
	}
	a.mutex.Lock()
	a.seen[i] = max(a.seen[i], l.Token)
	a.mutex.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// know blocks until every candidate has seen that the token leads.
func (a *audience) know(ctx context.Context, token elector.Token) error {
	for {
		a.mutex.Lock()
		least := slices.Min(a.seen)
		a.mutex.Unlock()
		if least >= token {
			return nil
		}
		select {
		case <-a.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
