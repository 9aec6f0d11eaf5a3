// Command budget counts what an election costs a store, on the wire, and
// compares it with what the design allows. It exits 1 if a figure is over, or
// if a store could not be had.
//
// Usage: go run ./cmd/budget [etcd] [zookeeper] [postgres] [dynamodb] [gcs]
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// ttl is the shortest that all stores bear.
const ttl = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted []string) (err error) {
	for _, kind := range wanted {
		if !slices.ContainsFunc(known, func(k store) bool { return k.kind == kind }) {
			return fmt.Errorf("unknown store %q; known are %s", kind, strings.Join(kinds(), ", "))
		}
	}
	var errs []error
	var all []*counted
	for _, k := range known {
		if len(wanted) > 0 && !slices.Contains(wanted, k.kind) {
			continue
		}
		s, err := k.start(ctx)
		if err != nil {
			errs = append(errs, err) // it says which store
			continue
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		fmt.Println(s.how)
		all = append(all, s)
	}

	// Counting is mostly waiting, so the stores are counted side by side; what
	// is timed comes one after the other.
	fmt.Printf("counting over %d renewals, at a TTL of %v …\n", intervals, ttl)
	counts := make([]cost, len(all))
	failures := make([]error, len(all))
	var counting sync.WaitGroup
	for i, s := range all {
		counting.Go(func() { counts[i], failures[i] = costs(ctx, s) })
	}
	counting.Wait()
	over := false
	for i, s := range all {
		err := failures[i]
		if err == nil {
			over = !report(s, counts[i]) || over
			err = reportHandovers(ctx, s, &over)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.how, err))
		}
	}
	if over {
		errs = append(errs, errors.New("the figures marked above are not as they must be"))
	}
	return errors.Join(errs...)
}

// report prints what was counted and returns whether it is as it must be.
func report(s *counted, c cost) bool {
	how, _, _ := strings.Cut(s.how, "; ") // there may follow why not otherwise, which was said above
	fmt.Printf("\n%s\n%-52s %10s %10s\n", how, "requests to the store, counted by its client", "counted", "budget")
	good := true
	for _, l := range c.lines(s.budget) {
		fmt.Printf("%-52s %10.2f %10.2f%s\n", l.what, l.count, l.most, l.verdict())
		good = good && l.verdict() == ""
	}
	if s.note != "" {
		fmt.Println(s.note)
	}
	if c.failed > 0 {
		fmt.Printf("%d requests failed meanwhile: if something is over, the machine may be too slow to count on\n", c.failed)
	}
	return good
}

func reportHandovers(ctx context.Context, s *counted, over *bool) error {
	trip, err := roundTrip(ctx, s)
	if err != nil {
		return err
	}
	rounds := 15 // releases for each number of waiters
	if s.polled {
		rounds = 5
	}
	fmt.Printf("one read takes %v; after a release, of %d rounds each:\n", trip.Round(time.Microsecond), rounds)
	for _, waiters := range []int{1, 10, 50} {
		h, err := handovers(ctx, s, waiters, rounds)
		if err != nil {
			return err
		}
		l := line{"", h.writes, 1, 6}
		fmt.Printf("%4d waiters: %.1f writes, the successor leads after %v (median) to %v (most): %.0f to %.0f round trips%s\n",
			waiters, h.writes, h.median.Round(10*time.Microsecond), h.most.Round(10*time.Microsecond), ratio(h.median, trip), ratio(h.most, trip), l.verdict())
		if l.verdict() != "" {
			fmt.Printf("      more than %.0f: waiters must give way to each other; less than %.0f: they were not counted\n", l.most, l.least)
			*over = true
		}
	}
	return nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func candidate(b backends.Backend, election string, trace *elector.Trace) (*elector.Elector, error) {
	return elector.New(b, election, &elector.Options{TTL: ttl, Trace: trace, Logger: slog.New(slog.DiscardHandler)})
}

// roundTrip is the median time of a read.
func roundTrip(ctx context.Context, s *counted) (time.Duration, error) {
	c, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer c.close()
	var took []time.Duration
	for range 101 {
		start := time.Now()
		if _, err := c.backend.Load(ctx, "round-trip"); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
