// Command budget counts on the wire what an election costs each store with this
// repository's library, compares it with what the design allows, and measures
// handovers. It exits 1 if a figure is over, or if a store could not be had.
//
// Usage: go run ./cmd/budget [KIND] …, of etcd, zookeeper, postgres, dynamodb, gcs,
// azureblob, consul, kubernetes, mysql, nats, redis and s3
//
// Without a name it measures all but consul and kubernetes.
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/gcs" // the others come with package peers
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/s3"
	"github.com/elector-go/elector/bench/cost"
	"github.com/elector-go/elector/bench/handover"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/stores"
)

// ttl is the shortest that all stores allow.
const ttl = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // adapters tell of what they make
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted []string) (err error) {
	kinds, err := stores.Choose(wanted)
	if err != nil {
		return err
	}
	stores.AnyCredentials()
	var errs []error
	var started []*stores.Store
	for _, kind := range kinds {
		s, err := stores.Start(ctx, kind)
		if err != nil {
			errs = append(errs, err) // it says which store
			continue
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		fmt.Println(s)
		plain, done, err := s.Plainly()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		defer done()
		started = append(started, plain)
	}

	// Counting is mostly waiting, so the stores are counted side by side; what
	// is timed comes one after the other.
	fmt.Printf("counting over %d renewals, at a TTL of %v …\n", cost.Intervals, ttl)
	counts := make([]cost.Requests, len(started))
	failures := make([]error, len(started))
	var counting sync.WaitGroup
	for i, s := range started {
		counting.Go(func() { counts[i], failures[i] = cost.Count(ctx, s, ttl) })
	}
	counting.Wait()
	good := true
	for i, s := range started {
		err := failures[i]
		if err == nil {
			good = report(s, counts[i]) && good
			err = handOver(ctx, s, &good)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Kind, err))
		}
	}
	if !good {
		errs = append(errs, errors.New("the figures marked above are not as they must be"))
	}
	return errors.Join(errs...)
}

// report prints what was counted and returns whether it is as it must be.
func report(s *stores.Store, r cost.Requests) bool {
	b := budgets[s.Kind]
	how, _, _ := strings.Cut(s.String(), "; ") // there may follow why not otherwise, which was said above
	fmt.Printf("\n%s\n%-52s %10s %10s\n", how, "requests to the store, counted on the wire", "counted", "budget")
	good := true
	for _, l := range b.lines(r) {
		fmt.Printf("%-52s %10.2f %10.2f%s\n", l.what, l.count, l.most, l.verdict())
		good = good && l.verdict() == ""
	}
	if b.note != "" {
		fmt.Println(b.note)
	}
	if r.Failed > 0 {
		fmt.Printf("%d requests failed meanwhile: if something is over, the machine may be too slow to count on\n", r.Failed)
	}
	return good
}

// handOver prints how long handovers take, and judges what the waiters write.
func handOver(ctx context.Context, s *stores.Store, good *bool) error {
	var writes atomic.Int64
	o := handover.Options{TTL: ttl, Written: writes.Load}
	library := peers.Ours(s.Kind, &elector.Trace{Request: func(_ context.Context, r elector.RequestInfo) {
		if r.Op == "swap" {
			writes.Add(1)
		}
	}})
	figures, err := o.Releases(ctx, library, s)
	for f := range slices.Chunk(figures, 3) { // of each number of waiters
		took, trips, wrote := f[0], f[1], line{"", mean(f[2].Values), 1, 6}
		fmt.Printf("%4d waiters: the successor knows %.1f ms after a resignation (median of %d), at most %.1f; %.0f to %.0f round trips; the waiters write %.1f times%s\n",
			took.Count, took.Median(), len(took.Values), took.Most(), trips.Median(), trips.Most(), wrote.count, wrote.verdict())
		if wrote.verdict() != "" {
			fmt.Printf("      more than %.0f: waiters must give way to each other; less than %.0f: they were not counted\n", wrote.most, wrote.least)
			*good = false
		}
	}
	return err
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// A budget is how many requests a store may get.
type budget struct {
	first, acquire float64
	idle           float64 // of one that waits or observes, in a renewal interval
	note           string  // why it is not the usual one
}

var budgets = map[string]budget{
	stores.Etcd:      {2, 2, 0, ""}, // everything is pushed
	stores.ZooKeeper: {4, 4, 2, "a read is two requests, for a sync comes first; and who leads has a watch set on its own node"},
	stores.Postgres:  {2, 2, 2, ""},
	stores.DynamoDB:  {2, 2, 2, ""},
	stores.Consul:    {2, 2, 2, ""},
	stores.MySQL:     {2, 2, 2, ""},
	stores.NATS:      {2, 2, 0, ""}, // everything is pushed
	stores.AzureBlob: {2, 2, 2, ""},
	stores.GCS:       {3, 2, 2, "where an object is missing, one more request asks whether the bucket is"},

	stores.Kubernetes: {2, 2, 0, ""}, // everything is pushed
	stores.Redis:      {2, 2, 2, ""},
	stores.S3:         {2, 2, 2, ""},
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

func (b budget) lines(r cost.Requests) []line {
	idle := 0.0 // where everything is pushed
	if b.idle > 0 {
		idle = 0.5
	}
	return []line{
		{"first acquire, while there is no record", r.First, 1, b.first},
		{"uncontended acquire", r.Acquire, 2, b.acquire},
		{"renewal", r.Renewal, 1, 1},
		{"resign", r.Resign, 1, 1},
		{"idle waiter, in one renewal interval", r.Waiter, idle, b.idle},
		{"idle observer, in one renewal interval", r.Observer, idle, b.idle},
	}
}
