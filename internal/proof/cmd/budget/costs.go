package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/elector-go/elector"
)

// intervals are the renewals over which the idle ones are counted.
const intervals = 10

// A cost is what was counted: of the very first acquisition in an election and
// of a later one, both with all that follows from it until the first renewal;
// of waiter and observer for one renewal interval.
type cost struct {
	first, acquire, renewal, resign, waiter, observer float64

	failed int64 // requests of anybody's, which make more of them
}

// A budget is how many requests a store may get.
type budget struct {
	first, acquire float64
	idle           float64 // of one that waits or observes, in a renewal interval
}

// A line is a figure with its bounds. A counter that sees too little is broken.
type line struct {
	what               string
	count, least, most float64
}

func (l line) verdict() string {
	switch {
	case l.count > l.most:
		return "  OVER"
	case l.count < l.least:
		return "  NOT COUNTED"
	}
	return ""
}

func (c cost) lines(b budget) []line {
	idle := 0.0 // where everything is pushed
	if b.idle > 0 {
		idle = 0.5
	}
	return []line{
		{"first acquire, while there is no record", c.first, 2, b.first},
		{"uncontended acquire", c.acquire, 2, b.acquire},
		{"renewal", c.renewal, 1, 1},
		{"resign", c.resign, 1, 1},
		{"idle waiter, in one renewal interval", c.waiter, idle, b.idle},
		{"idle observer, in one renewal interval", c.observer, idle, b.idle},
	}
}

// costs counts a leader's requests, and those of a waiter and of an observer
// beside it, each through a client of its own.
func costs(ctx context.Context, s *counted) (c cost, err error) {
	const election = "budget"
	var failed atomic.Int64
	defer func() { c.failed = failed.Load() }()
	trouble := func(_ context.Context, r elector.RequestInfo) {
		if r.Err != nil && r.Op != "watch" && r.Op != "watch-presence" { // these end in no other way
			failed.Add(1)
		}
	}
	leading, err := s.open(ctx)
	if err != nil {
		return c, err
	}
	defer leading.close()
	renewed := make(chan struct{}, 1000)
	leader, err := candidate(leading.backend, election, &elector.Trace{
		Request: trouble,
		Renewed: func(context.Context, elector.LeaseInfo) { renewed <- struct{}{} },
	})
	if err != nil {
		return c, err
	}
	defer leader.Close()

	var lease *elector.Lease
	// renewals lets some pass; the first ones are over before counting starts.
	renewals := func(n int) error {
		for range n {
			select {
			case <-renewed:
			case <-lease.Context().Done():
				return fmt.Errorf("the machine is too slow to count on: %w", context.Cause(lease.Context()))
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	acquire := func() (float64, error) {
		before := leading.requests()
		var err error
		if lease, err = leader.Campaign(ctx); err != nil {
			return 0, err
		}
		err = renewals(1)
		return float64(leading.requests() - before - 1), err
	}
	resign := func() (float64, error) {
		before := leading.requests()
		err := leader.Resign(ctx)
		return float64(leading.requests() - before), err
	}

	if c.first, err = acquire(); err != nil {
		return c, err
	}
	before := leading.requests()
	if err := renewals(intervals); err != nil {
		return c, err
	}
	c.renewal = float64(leading.requests()-before) / intervals

	idle := func(start func(*elector.Elector, context.Context)) (float64, error) {
		beside, err := s.open(ctx)
		if err != nil {
			return 0, err
		}
		defer beside.close()
		e, err := candidate(beside.backend, election, &elector.Trace{Request: trouble})
		if err != nil {
			return 0, err
		}
		defer e.Close()
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go start(e, waiting)
		if err := renewals(3); err != nil {
			return 0, err
		}
		before := beside.requests()
		err = renewals(intervals)
		return float64(beside.requests()-before) / intervals, err
	}
	if c.waiter, err = idle(func(e *elector.Elector, ctx context.Context) { e.Campaign(ctx) }); err != nil {
		return c, err
	}
	c.observer, err = idle(func(e *elector.Elector, ctx context.Context) {
		for range e.Observe(ctx) {
		}
	})
	if err != nil {
		return c, err
	}
	if c.resign, err = resign(); err != nil {
		return c, err
	}
	if c.acquire, err = acquire(); err != nil {
		return c, err
	}
	_, err = resign()
	return c, err
}
