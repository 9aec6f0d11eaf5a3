package elector_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// The tests that use what is below run in a bubble (testing/synctest): time
// passes only when everybody waits, so a slow machine changes nothing, and a
// goroutine left behind fails the test.

// join makes a candidate that is closed at the end of the test.
func join(t *testing.T, b backends.Backend, o elector.Options) *elector.Elector {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
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
		if err != nil && t.Context().Err() == nil { // a case that has failed ends its campaigns
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
