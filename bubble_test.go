package elector_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/inject"
)

// The tests that use what is below run in a bubble (testing/synctest): time
// passes only when everybody waits, so a slow machine changes nothing, and a
// goroutine left behind fails the test.

// A bubbleClock is the clock of a machine in a bubble.
type bubbleClock struct {
	clock.System
	start time.Time
}

// Now implements clock.Clock.
func (c bubbleClock) Now() clock.Reading {
	now := time.Now()
	return clock.Reading{Mono: now.Sub(c.start), Wall: time.Duration(now.UnixNano())}
}

// Boot implements clock.Clock: the machine's own goes on by itself.
func (bubbleClock) Boot() time.Duration { return 0 }

// join makes a candidate that is closed at the end of the test.
func join(t *testing.T, b backends.Backend, o elector.Options) *elector.Elector {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	inject.Machine(&o, bubbleClock{start: time.Now().Add(-time.Hour)}, nil)
	e, err := elector.New(b, "bubble", &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// campaign makes the candidate campaign in the background.
func campaign(t *testing.T, e *elector.Elector) <-chan *elector.Lease {
	return begin(func() *elector.Lease {
		l, err := e.Campaign(t.Context())
		if err != nil {
			t.Error(err)
		}
		return l
	})
}

// win makes the candidate lead.
func win(t *testing.T, e *elector.Elector) *elector.Lease {
	t.Helper()
	l := wait(t, campaign(t, e), "the candidate leads")
	if l == nil {
		t.FailNow()
	}
	return l
}

// wait waits for a signal, for an hour of the bubble's time.
func wait[T any](t *testing.T, signal <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-signal:
		return v
	case <-time.After(time.Hour):
		t.Fatalf("not within an hour: %s", what)
		panic("not reached")
	}
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// begin calls f and returns where its result comes.
func begin[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}
