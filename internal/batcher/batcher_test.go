package batcher

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/clock"
)

// Two swaps of one election do not go in one request: stores refuse two changes of one
// record.
func TestBatchOfOneElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active sync.WaitGroup
		m := New(memory.New(), clock.System{}, time.Minute, &active)
		h := m.enter()
		defer h.leave()
		var met []*batch[swap]
		for _, name := range []string{"twice", "once", "twice"} {
			b, _ := h.swaps.join(m, swap{Change: backends.Change{Name: name}})
			met = append(met, b)
		}
		if met[0] != met[1] || met[0] == met[2] {
			t.Error("only the two of one election go apart")
		}
		active.Wait()
	})
}

// A refuser refuses swaps that come together for good, and holds single ones until it is
// closed.
type refuser struct {
	backends.BatchSwapper
	hold chan struct{}

	mutex  sync.Mutex
	single []string // elections of swaps that came by themselves
}

func (r *refuser) Swap(_ context.Context, name string, _, next backends.Record) (backends.Record, error) {
	r.mutex.Lock()
	r.single = append(r.single, name)
	r.mutex.Unlock()
	<-r.hold
	return next, nil
}

func (r *refuser) SwapMany(_ context.Context, changes []backends.Change) []backends.Outcome {
	return slices.Repeat([]backends.Outcome{{Err: backends.ErrDenied}}, len(changes))
}

// Where a request is refused, each swap of it goes by itself, because another one may be the
// reason. But a creation compares with no version: it may still be applied, and then a second
// one too, after others have led. Only its caller knows whether that may be.
func TestRefusedTogether(t *testing.T) {
	for _, c := range []struct {
		name   string
		prev   backends.Record
		single bool
	}{
		{"creations", backends.Record{}, false},
		{"changes", backends.Record{Version: "1", Attempt: backends.Attempt{Nonce: "n"}, Token: 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &refuser{BatchSwapper: memory.New(), hold: make(chan struct{})}
				var active, all sync.WaitGroup
				outcomes := map[string]error{}
				var mutex sync.Mutex
				for _, name := range []string{"first", "a", "b"} {
					m := New(r, clock.System{}, time.Minute, &active)
					all.Go(func() {
						_, err := m.Swap(t.Context(), backends.Change{Name: name, Prev: c.prev}, false, nil)
						mutex.Lock()
						outcomes[name] = err
						mutex.Unlock()
					})
					synctest.Wait()
				}
				close(r.hold)
				all.Wait()
				active.Wait()
				for _, name := range []string{"a", "b"} {
					if err := outcomes[name]; slices.Contains(r.single, name) != c.single || c.single != (err == nil) || !c.single && (!errors.Is(err, backends.ErrUnavailable) || backends.Permanent(err)) {
						t.Errorf("%s ends with %v; by themselves went %v", name, err, r.single)
					}
				}
			})
		})
	}
}

// A swap whose time is over while it waits stays behind, and the others go. That is no failure
// of the store.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{BatchSwapper: memory.New(), hold: make(chan struct{})}
		var active, all sync.WaitGroup
		start := time.Now()
		late := func() bool { return time.Since(start) < longestHold/2 }
		m := New(r, clock.System{}, time.Minute, &active)
		h := m.enter()
		defer h.leave()
		h.swaps.flying = lanes // so that both wait
		for name, may := range map[string]func() bool{"late": late, "other": nil} {
			m := New(r, clock.System{}, time.Minute, &active)
			all.Go(func() {
				_, err := m.Swap(t.Context(), backends.Change{Name: name}, false, may)
				if name == "late" && (!notTried(err) || !m.swaps.asks()) || name == "other" && err != nil {
					t.Errorf("%s ends with %v", name, err)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		close(r.hold)
		all.Wait()
		active.Wait()
		if len(r.single) != 1 || r.single[0] != "other" {
			t.Errorf("the swaps of %v were sent", r.single)
		}
	})
}

// A member whose shared request failed makes single ones, until one of those fails too.
func TestTrust(t *testing.T) {
	var m trust
	for range 3 {
		m.outcome(backends.ErrUnavailable)
	}
	if m.asks() {
		t.Error("after failures it shares a request")
	}
	m.solo(backends.ErrConflict)
	if m.asks() {
		t.Error("after a conflict it shares a request")
	}
	m.solo(backends.ErrUnavailable)
	if !m.asks() {
		t.Error("after a failure by itself it goes on by itself")
	}
}
