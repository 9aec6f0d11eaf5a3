// Command budget counts what an election costs a store, on the wire, and
// compares it with what the design allows. It exits 1 if a figure is over.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

const (
	ttl       = 1500 * time.Millisecond
	intervals = 10 // renewals over which the idle ones are counted
	rounds    = 15 // releases for each number of waiters
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	over := false
	for _, start := range []func(context.Context) (*counted, error){startEtcd, startPostgres} {
		s, err := start(ctx)
		if err == nil {
			err = report(ctx, s, &over)
			s.stop()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "budget:", err)
			os.Exit(1)
		}
	}
	if over {
		os.Exit(1)
	}
}

func report(ctx context.Context, s *counted, over *bool) error {
	fmt.Printf("\n%s\n%-52s %10s %10s\n", s.how, "requests to the store, counted by its client", "counted", "budget")
	line := func(what string, count, budget float64) {
		verdict := ""
		if count > budget {
			verdict, *over = "  OVER", true
		}
		fmt.Printf("%-52s %10.2f %10.2f%s\n", what, count, budget, verdict)
	}
	c, err := costs(ctx, s)
	if err != nil {
		return err
	}
	line("uncontended acquire", c.acquire, 2)
	line("renewal", c.renewal, 1)
	line("resign", c.resign, 1)
	line("idle waiter, in one renewal interval", c.waiter, s.idle)
	line("idle observer, in one renewal interval", c.observer, s.idle)

	trip, err := roundTrip(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("one read takes %v; after a release, of %d rounds each:\n", trip.Round(time.Microsecond), rounds)
	for _, waiters := range []int{1, 10, 50} {
		h, err := handovers(ctx, s, waiters)
		if err != nil {
			return err
		}
		fmt.Printf("%4d waiters: %.1f writes, the successor leads after %v (median) to %v (most): %.0f to %.0f round trips\n",
			waiters, h.writes, h.median.Round(10*time.Microsecond), h.most.Round(10*time.Microsecond), ratio(h.median, trip), ratio(h.most, trip))
		if h.writes > 6 {
			fmt.Println("      OVER: waiters must give way to each other")
			*over = true
		}
	}
	return nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

type cost struct{ acquire, renewal, resign, waiter, observer float64 }

// costs counts a leader's requests, and those of a waiter and of an observer
// beside it, each through a client of its own.
func costs(ctx context.Context, s *counted) (cost, error) {
	var c cost
	election := "budget"
	leading, err := s.open(ctx)
	if err != nil {
		return c, err
	}
	defer leading.Close()
	renewed := make(chan struct{}, 1000)
	leader, err := candidate(leading, election, &elector.Trace{Renewed: func(elector.Token, time.Duration) { renewed <- struct{}{} }})
	if err != nil {
		return c, err
	}
	// renewals lets some pass; the first ones are over before counting starts.
	renewals := func(n int) error {
		for range n {
			select {
			case <-renewed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}

	before := leading.requests()
	lease, err := leader.Campaign(ctx)
	if err != nil {
		return c, err
	}
	c.acquire = float64(leading.requests() - before)
	if err := renewals(1); err != nil {
		return c, err
	}
	before = leading.requests()
	if err := renewals(intervals); err != nil {
		return c, err
	}
	c.renewal = float64(leading.requests()-before) / intervals

	idle := func(start func(*elector.Elector, context.Context)) (float64, error) {
		b, err := s.open(ctx)
		if err != nil {
			return 0, err
		}
		defer b.Close()
		e, err := candidate(b, election, nil)
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
		before := b.requests()
		err = renewals(intervals)
		return float64(b.requests()-before) / intervals, err
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
	if err := lease.Check(); err != nil {
		return c, fmt.Errorf("the machine is too slow to count on: %w", err)
	}
	before = leading.requests()
	if err := leader.Resign(ctx); err != nil {
		return c, err
	}
	c.resign = float64(leading.requests() - before)
	return c, leader.Close()
}

func candidate(b backends.Backend, election string, trace *elector.Trace) (*elector.Elector, error) {
	return elector.New(b, election, &elector.Options{TTL: ttl, Trace: trace, Logger: slog.New(slog.DiscardHandler)})
}

// roundTrip is the median time of a read.
func roundTrip(ctx context.Context, s *counted) (time.Duration, error) {
	b, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	var took []time.Duration
	for range 101 {
		start := time.Now()
		if _, err := b.Load(ctx, "round-trip"); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
