package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

// exampleOptions makes examples brief: production uses the defaults.
func exampleOptions(id string) *elector.Options {
	return &elector.Options{ID: id, TTL: 5 * time.Second, RenewEvery: time.Second, RequestTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
}

// A leader publishes where it is, again and again, under the same token.
func ExampleLease_Proclaim() {
	ctx := context.Background()
	e, err := elector.New(memory.New(), "api", &elector.Options{Value: "starting"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	lease, err := e.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := lease.Proclaim(ctx, "10.0.0.1:8080"); err != nil {
		fmt.Println(err)
		return
	}
	l, err := e.Leader(ctx)
	fmt.Println(l.Value, err)
	// Output: 10.0.0.1:8080 <nil>
}

// A candidate that is not healthy does not lead, and a leader that is not resigns.
func ExampleOptions_healthy() {
	var healthy atomic.Bool
	o := exampleOptions("host-1")
	o.Healthy = func(context.Context) error {
		if !healthy.Load() {
			return errors.New("the cache is not loaded")
		}
		return nil
	}
	e, err := elector.New(memory.New(), "api", o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	_, err = e.TryCampaign(context.Background())
	fmt.Println(errors.Is(err, elector.ErrUnhealthy))
	healthy.Store(true)
	_, err = e.TryCampaign(context.Background())
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// A candidate loads its cache while it waits, so that it serves as soon as it leads.
func ExampleOptions_standby() {
	var cache []string
	o := exampleOptions("host-1")
	o.Standby = func(context.Context) { // an endless loop would end with the context
		cache = []string{"prices", "rates"}
	}
	e, err := elector.New(memory.New(), "api", o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = e.Run(ctx, func(context.Context, *elector.Lease) error {
		fmt.Println("leads with", cache) // Standby has returned
		stop()
		return nil
	})
	fmt.Println(err)
	// Output:
	// leads with [prices rates]
	// <nil>
}

// A process that is about to stop lets others lead next.
func ExampleElector_SetPriority() {
	ctx, terminate := context.WithCancel(context.Background())
	defer terminate()
	e, err := elector.New(memory.New(), "api", &elector.Options{ID: "host-1", Priority: 7}) // the revision of the deploy
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	lowered := make(chan error, 1)
	context.AfterFunc(ctx, func() { lowered <- e.SetPriority(0) })
	terminate()
	fmt.Println(<-lowered)
	// Output: <nil>
}

// A Trace reports each step, for metrics and tests.
func ExampleTrace() {
	o := exampleOptions("host-1")
	o.Trace = &elector.Trace{
		Acquired: func(_ context.Context, l elector.LeaseInfo) { fmt.Println("acquired", l.Election) },
		Released: func(_ context.Context, l elector.LeaseInfo) { fmt.Println("released", l.Election, l.Err) },
	}
	e, err := elector.New(memory.New(), "api", o)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := e.Campaign(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Close())
	// Output:
	// acquired api
	// released api <nil>
	// <nil>
}

// A handler beside the worker gets the lease, and checks it before each side effect.
func ExampleElector_Lease() {
	e, err := elector.New(memory.New(), "api", exampleOptions("host-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	handle := func() error {
		lease, err := e.Lease()
		if err != nil {
			return err
		}
		return lease.Check()
	}
	fmt.Println(errors.Is(handle(), elector.ErrNotLeader), e.State())
	if _, err := e.Campaign(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(handle(), e.State())
	// Output:
	// true idle
	// <nil> leading
}
