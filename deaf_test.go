package elector_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// mostUnanswered is how many requests may hang in a backend that ignores its
// contexts.
const mostUnanswered = 16

// A backend that ignores its contexts keeps a bounded number of requests, and
// when it answers again everything goes on.
func TestDeafBackend(t *testing.T) {
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
		start := time.Now()
		if _, err := e.Leader(t.Context()); !errors.Is(err, elector.ErrUnavailable) || time.Since(start) > 0 {
			t.Errorf("one request more, after %v: %v", time.Since(start), err)
		}
		hears()
		l := wait(t, leads, "the campaign goes on when the store answers")

		// All that hung are counted out again: there is room for as many.
		if err := l.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := f.Count("load")
		hears = deaf()
		for range 2 * mostUnanswered {
			if _, err := e.Leader(t.Context()); !errors.Is(err, elector.ErrUnavailable) {
				t.Errorf("a store that does not answer: %v", err)
			}
		}
		if n := f.Count("load") - before; n != mostUnanswered {
			t.Errorf("the second time %d requests hang, not %d", n, mostUnanswered)
		}
		hears()
		win(t, e)
	})
}
