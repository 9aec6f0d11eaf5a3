package elector_test

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

// sender is a worker as a service has it: it sends an invoice each minute for as
// long as it leads.
type sender struct{ sent atomic.Int32 }

func (s *sender) work(ctx context.Context, lease *elector.Lease) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := lease.Check(); err != nil {
			return err
		}
		s.sent.Add(1)
	}
}

// testSender is the body of a test of that worker, TestSender say. In a bubble of
// testing/synctest hours pass in a moment, and the memory backend plays the
// store.
func testSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
		candidate := func(id string) *elector.Elector {
			e, err := elector.New(store.Handle(), "invoices", &elector.Options{ID: id, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		e := candidate("sender")
		defer e.Close()
		ctx, stop := context.WithCancel(t.Context())
		var s sender
		returned := make(chan error, 1)
		go func() { returned <- e.Run(ctx, s.work) }()

		// It wins, and works.
		time.Sleep(10*time.Minute + time.Second)
		if n := s.sent.Load(); n != 10 {
			t.Errorf("a leader has sent %d invoices, want 10", n)
		}

		// It loses: an operator deposes it, and another candidate leads.
		store.Depose("invoices")
		other := candidate("other")
		defer other.Close()
		lease, err := other.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := s.sent.Load(); n != 10 {
			t.Errorf("after it has lost it sends %d invoices", n-10)
		}

		// It leads again, and is told to stop.
		if err := lease.Resign(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Minute + time.Second)
		stop()
		if err := <-returned; err != nil {
			t.Errorf("a worker that was told to stop: %v", err)
		}
		if leader, err := other.Leader(t.Context()); err != nil || !leader.Vacant() || s.sent.Load() <= 10 {
			t.Errorf("it has sent %d invoices, and now leads: %+v, %v", s.sent.Load(), leader, err)
		}
	})
}

// A test of a worker that wins, loses and is told to stop takes no time: it runs
// in a bubble of testing/synctest, on the memory backend.
func Example_testOfAWorker() {
	var t *testing.T // of TestSender
	if t != nil {
		testSender(t)
	}
}
