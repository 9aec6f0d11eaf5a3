package elector_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

// Elector.Token is no sign of life of the worker: a health page that asks for
// it must not keep a dead worker in office.
func TestTokenIsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := join(t, memory.New(), elector.Options{StallTimeout: 5 * time.Second})
		start := time.Now()
		l := win(t, e)
		for l.Context().Err() == nil && time.Since(start) < time.Hour {
			e.Token()
			pass(time.Second)
		}
		if err := l.Check(); !errors.Is(err, elector.ErrLost) {
			t.Errorf("a worker that never called Check leads after %v: %v", time.Since(start), err)
		}
	})
}

// Proclaim is a sign of life, and of one that was silent for too long as well:
// its own renewal is not held up.
func TestProclaimIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := join(t, memory.New(), elector.Options{StallTimeout: 2 * time.Second})
		l := win(t, e)
		for start := time.Now(); time.Since(start) < 10*time.Minute; pass(10 * time.Second) {
			asked := time.Now()
			if err := l.Proclaim(t.Context(), time.Since(start).String()); err != nil {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
			if took := time.Since(asked); took > 0 {
				t.Errorf("Proclaim waited for %v with a store that answers at once", took)
			}
		}
	})
}
