package main

import (
	"context"
	"fmt"
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
func handovers(ctx context.Context, s *counted, waiters int) (handover, error) {
	b, err := s.open(ctx)
	if err != nil {
		return handover{}, err
	}
	defer b.Close()
	ctx, stop := context.WithCancel(ctx)
	election := fmt.Sprintf("handover-%d", waiters)
	var writes atomic.Int64
	var waiting sync.WaitGroup
	leases := make(chan *elector.Lease)
	rejoin := make(chan struct{}) // for the one that resigned, once another leads
	for range waiters + 1 {
		seen := make(chan struct{}, 1)
		e, err := candidate(b, election, &elector.Trace{
			Request: func(r elector.RequestInfo) {
				if r.Op == "swap" {
					writes.Add(1)
				}
			},
			Observed: func(elector.Leader) {
				select {
				case seen <- struct{}{}:
				default:
				}
			},
		})
		if err != nil {
			stop()
			return handover{}, err
		}
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			defer e.Close()
			for {
				l, err := e.Campaign(ctx)
				if err != nil {
					return
				}
				leases <- l
				select {
				case <-rejoin:
				case <-ctx.Done():
					return
				}
			}
		}()
		<-seen // it has read the record, and waits or leads
	}
	defer waiting.Wait()
	defer stop()

	var h handover
	var took []time.Duration
	lease := <-leases
	for range rounds {
		// The one that resigned queues up again, and every waiter has to be
		// back from the last round: two renewals are time for that.
		settled, cancel := context.WithTimeout(ctx, ttl/2)
		<-settled.Done()
		cancel()
		before := writes.Load()
		start := time.Now()
		released := make(chan error, 1)
		go func() { released <- lease.Resign(ctx) }()
		next := <-leases
		took = append(took, time.Since(start))
		rejoin <- struct{}{}
		if err := <-released; err != nil {
			return h, err
		}
		if next.Token() <= lease.Token() {
			return h, fmt.Errorf("token %d after %d", next.Token(), lease.Token())
		}
		h.writes += float64(writes.Load() - before - 1) // one is the release
		lease = next
	}
	slices.Sort(took)
	h.writes /= rounds
	h.median, h.most = took[len(took)/2], took[len(took)-1]
	return h, nil
}
