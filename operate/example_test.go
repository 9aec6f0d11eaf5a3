package operate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/operate"
)

// options makes the examples brief: production uses the defaults.
func options(id string) *elector.Options {
	return &elector.Options{ID: id, TTL: 5 * time.Second, RenewEvery: time.Second, RequestTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
}

// Any process can move the leader. Its worker ends in an orderly way first.
func ExampleOperator_RequestResign() {
	ctx := context.Background()
	store := memory.NewStore()
	leads := make(chan string, 2)
	for _, id := range []string{"host-1", "host-2"} {
		e, err := elector.New(store.Handle(), "scheduler", options(id))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer e.Close()
		go e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
			leads <- e.ID()
			<-ctx.Done()
			return nil
		})
		if id == "host-1" {
			fmt.Println(<-leads, "leads")
		}
	}

	e, err := elector.New(store.Handle(), "scheduler", options("operator"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	err = e.Operator().RequestResign(ctx, operate.ResignRequest{To: "host-2"})
	fmt.Println(<-leads, "leads,", err)
	// Output:
	// host-1 leads
	// host-2 leads, <nil>
}

// During maintenance no candidate leads. TryCampaign says who has paused, and why.
func ExampleOperator_Pause() {
	ctx := context.Background()
	e, err := elector.New(memory.New(), "invoices", options("host-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	if _, err := e.Campaign(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if err := e.Resign(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("paused:", e.Operator().Pause(ctx, operate.Pause{Reason: "migration 42", For: time.Hour}))
	_, err = e.TryCampaign(ctx)
	fmt.Println(errors.Is(err, elector.ErrPaused))
	fmt.Println("resumed:", e.Operator().Resume(ctx))
	_, err = e.TryCampaign(ctx)
	fmt.Println(err)
	// Output:
	// paused: <nil>
	// true
	// resumed: <nil>
	// <nil>
}
