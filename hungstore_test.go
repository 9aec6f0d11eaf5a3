package elector_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// mostUnanswered is how many requests of a rank may hang in a backend that ignores its
// contexts.
const mostUnanswered = 16

// A backend that ignores its contexts keeps a bounded number of requests, for
// each purpose, and when it answers again everything goes on.
func TestHungBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := fault.Wrap(memory.New())
		e := join(t, b, elector.Options{})
		deaf := func() (hears func()) {
			release := make(chan struct{})
			f.Always(fault.Deaf(release))
			return func() {
				f.Always(nil)
				close(release)
				synctest.Wait()
			}
		}

		hears := deaf()
		leads := campaign(t, e)
		pass(time.Hour)
		if n := f.Count("load") + f.Count("swap"); n != mostUnanswered {
			t.Errorf("after an hour %d requests hang, not %d", n, mostUnanswered)
		}
		hears()
		l := wait(t, leads, "the campaign goes on when the store answers")

		// All that hung are counted out again: there is room for as many.
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := f.Count("load")
		hears = deaf()
		for range 2 * mostUnanswered {
			if _, err := e.Leader(t.Context()); !errors.Is(err, elector.ErrUnavailable) {
				t.Errorf("a store that does not answer: %v", err)
			}
		}
		start := time.Now()
		if _, err := e.Leader(t.Context()); !errors.Is(err, elector.ErrUnavailable) || time.Since(start) > 0 {
			t.Errorf("one request more, after %v: %v", time.Since(start), err)
		}
		if n := f.Count("load") - before; n != mostUnanswered {
			t.Errorf("the second time %d requests hang, not %d", n, mostUnanswered)
		}
		hears()
		win(t, e)
	})
}

// Reads that hang for a user, and a Healthy that never returns or ends its
// goroutine, cost no lease whose writes work.
func TestHungReadsCostNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := fault.Wrap(memory.New())
		e := join(t, b, elector.Options{})
		l := win(t, e)
		release := make(chan struct{})
		f.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "load" {
				<-release
			}
			return send(ctx)
		})
		for range 2 * mostUnanswered {
			go e.Leader(t.Context())
		}
		pass(time.Hour)
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		close(release)
	})
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		e := join(t, memory.New(), elector.Options{Healthy: func(context.Context) error {
			if asked.Add(1) > 1 {
				runtime.Goexit()
			}
			return nil
		}})
		win(t, e)
		pass(time.Minute)
		again := begin(func() error { _, err := e.TryCampaign(t.Context()); return err })
		for range 2 * mostUnanswered {
			if err := wait(t, again, "TryCampaign returns"); !errors.Is(err, elector.ErrUnhealthy) || !strings.Contains(err.Error(), "goroutine") {
				t.Errorf("a Healthy that ends its goroutine: %v", err)
			}
			again = begin(func() error { _, err := e.TryCampaign(t.Context()); return err })
		}
		wait(t, again, "TryCampaign returns")
	})
}
