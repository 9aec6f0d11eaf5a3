package elector_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

// Most services need no more than this. Replace memory by the store that you
// run, and import its backend.
func Example() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "memory://example", "invoice-sender", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	invoices := []string{"invoice 1", "invoice 2"}
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		for _, invoice := range invoices {
			// Ask before each side effect …
			if err := lease.Check(); err != nil {
				return err
			}
			// … and send the token with it, for the other side to refuse it
			// if it arrives late.
			send(ctx, invoice, lease.Token())
		}
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// sent invoice 1
	// sent invoice 2
	// done: <nil>
}

func send(_ context.Context, invoice string, _ elector.Token) { fmt.Println("sent", invoice) }

// When its context ends, by a SIGTERM say, Run waits for the worker to return
// and hands over to the next candidate at once.
func ExampleElector_Run() {
	ctx, terminate := context.WithCancel(context.Background())
	defer terminate()
	e, err := elector.Open(ctx, "memory://run", "scheduler", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		fmt.Println("leads:", lease.Check() == nil)
		terminate()
		<-ctx.Done()
		// The lease stays valid while the worker cleans up.
		fmt.Println("told to stop, still leads:", lease.Check() == nil)
		return nil
	})
	fmt.Println("returned:", err)

	leader, err := e.Leader(context.Background())
	fmt.Println("vacant:", leader.Vacant(), err)
	// Output:
	// leads: true
	// told to stop, still leads: true
	// returned: <nil>
	// vacant: true <nil>
}

// Campaign is for programs that cannot put their work into one function.
func ExampleElector_Campaign() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "memory://campaign", "compactor", &elector.Options{ID: "node-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	lease, err := e.Campaign(ctx) // blocks until this process leads
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leads:", lease.Check() == nil)

	token, err := e.Token() // that of the lease now held
	fmt.Println("same token:", token == lease.Token(), err)

	fmt.Println("resigned:", lease.Release(ctx))
	fmt.Println("context ended:", errors.Is(context.Cause(lease.Context()), elector.ErrResigned))
	fmt.Println("leads:", lease.Check() == nil)
	_, err = e.Token()
	fmt.Println("no leader, no token:", errors.Is(err, elector.ErrNotLeader))
	// Output:
	// leads: true
	// same token: true <nil>
	// resigned: <nil>
	// context ended: true
	// leads: false
	// no leader, no token: true
}

// TryCampaign does not wait. Many elections can share one backend.
func ExampleElector_TryCampaign() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	first, err1 := elector.New(store, "reports", &elector.Options{ID: "node-1"})
	second, err2 := elector.New(store, "reports", &elector.Options{ID: "node-2"})
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	defer second.Close()

	lease, err := first.TryCampaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	var held *elector.HeldError
	if _, err := second.TryCampaign(ctx); errors.As(err, &held) {
		fmt.Println("held by", held.Leader.ID)
	}

	fmt.Println("resigned:", lease.Release(ctx))
	next, err := second.TryCampaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("second leads, with a higher token:", next.Token() > lease.Token())
	// Output:
	// held by node-1
	// resigned: <nil>
	// second leads, with a higher token: true
}

// Observe tells who leads, for routing or a dashboard. It needs no lease.
func ExampleElector_Observe() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	candidate, err1 := elector.New(store, "api", &elector.Options{ID: "node-1", Value: "10.0.0.1:8080"})
	observer, err2 := elector.New(store, "api", nil)
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	defer candidate.Close()
	defer observer.Close()

	lease, err := candidate.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for leader, err := range observer.Observe(ctx) {
		if err != nil { // the last pair
			fmt.Println(err)
			break
		}
		if leader.Vacant() {
			fmt.Println("no process leads")
			break
		}
		fmt.Println(leader.ID, "serves at", leader.Value)
		// Each step makes the change that is observed next.
		if leader.Value == "10.0.0.1:8080" {
			err = lease.Proclaim(ctx, "10.0.0.1:9090")
		} else {
			err = lease.Release(ctx)
		}
		if err != nil {
			fmt.Println(err)
			break
		}
	}
	// Output:
	// node-1 serves at 10.0.0.1:8080
	// node-1 serves at 10.0.0.1:9090
	// no process leads
}

// A Fence stands in front of what the leader writes to, and stops a leader that
// was paused and does not know that it was replaced.
func ExampleFence() {
	ctx := context.Background()
	var fence elector.Fence
	write := func(token elector.Token, text string) {
		err := fence.Do(ctx, "ledger", token, func(context.Context) error {
			fmt.Println("writes:", text)
			return nil
		})
		if errors.Is(err, elector.ErrStale) {
			fmt.Println("refused:", text)
		}
	}
	write(7, "first leader")
	write(8, "second leader")
	write(7, "first leader, late")
	write(8, "second leader again")
	// Output:
	// writes: first leader
	// writes: second leader
	// refused: first leader, late
	// writes: second leader again
}

// A leader that knows who should lead next says so.
func ExampleElector_ResignTo() {
	ctx := context.Background()
	open := func(id string) *elector.Elector {
		e, err := elector.Open(ctx, "memory://handover", "scheduler", &elector.Options{ID: id})
		if err != nil {
			panic(err)
		}
		return e
	}
	old, next := open("old"), open("new")
	defer old.Close()
	defer next.Close()
	if _, err := old.Campaign(ctx); err != nil {
		fmt.Println(err)
	}
	if err := old.ResignTo(ctx, "new"); err != nil {
		fmt.Println(err)
	}
	if _, err := next.Campaign(ctx); err != nil {
		fmt.Println(err)
	}
	terms, err := next.Operator().History(ctx)
	for _, t := range terms {
		fmt.Printf("%s: %q\n", t.ID, t.Reason)
	}
	fmt.Println(err)
	// Output:
	// old: "resigned"
	// new: ""
	// <nil>
}
