package cost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/bench/wire"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) { leak.Main(m) }

const ttl = 60 * time.Millisecond

func newSubject(t *testing.T, l *library, observes, short bool) *subject {
	t.Cleanup(func() {
		if l.opened.Load() != l.closed.Load() {
			t.Errorf("%d candidates were opened and %d closed", l.opened.Load(), l.closed.Load())
		}
	})
	return &subject{store: newStore(t), library: l.peer(observes), o: Options{TTL: ttl, Short: short, Log: t.Logf}, prefix: "test"}
}

func find(figures []results.Figure, what string, waiters int, unit string) results.Figure {
	i := slices.IndexFunc(figures, func(f results.Figure) bool { return f.What == what && f.Count == waiters && f.Unit == unit })
	if i < 0 {
		return results.Figure{Note: "there is no such figure"}
	}
	return figures[i]
}

// Each figure is what the library is known to send, and there is one for
// everything.
func TestEverythingIsCounted(t *testing.T) {
	for _, short := range []bool{true, false} {
		s := newSubject(t, &library{}, true, short)
		figures, err := s.measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rounds, windows, waiters := 5, 4, []int{1, 10, 50}
		if short {
			rounds, windows, waiters = 1, 1, waiters[:2]
		}
		looked := 0
		look := func(what string, count int, unit string, n int, value float64) {
			t.Helper()
			looked++
			f := find(figures, what, count, unit)
			if want := slices.Repeat([]float64{value}, n); !slices.Equal(f.Values, want) {
				t.Errorf("short %v, %s, %d waiters, %s: %v %s; want %v", short, what, count, unit, f.Values, f.Note, want)
			}
			if f.Subject != results.Cost || f.Library != "fake" || f.Store != "zookeeper" {
				t.Errorf("%+v; want whose it is", f)
			}
		}
		// Of a request come 12 bytes and go 12; a session has them too.
		both := func(what string, count, n int, requests, sessions float64) {
			look(what, count, "requests", n, requests)
			look(what, count, "bytes", n, 24*(requests+sessions))
		}
		both(FirstAcquire, 0, rounds, 3, 1)
		both(Opening, 0, rounds, 2, 1)
		both(Acquire, 0, rounds, 1, 0)
		both(Resign, 0, rounds, 1, 0)
		both(Closing, 0, rounds, 1, 0)
		both(Holding, 0, windows, 0, 0)
		both(Observing, 0, windows, 0, 0)
		look(Holding, 0, "connections", windows, 1)
		look(Observing, 0, "connections", windows, 1)
		for _, n := range waiters {
			both(Waiting, n, windows, 0, 0)
			look(Waiting, n, "connections", windows, float64(n))
			both(Handover, n, rounds, 2, 0)
			both(HandoverAndTTL, n, rounds, 2, 0)
		}
		if !slices.IsSortedFunc(figures, func(a, b results.Figure) int { return slices.Index(order, a.What) - slices.Index(order, b.What) }) {
			t.Errorf("short %v: the figures are not in order", short)
		}
		if len(figures) != looked {
			t.Errorf("short %v: %d figures; want %d", short, len(figures), looked)
		}
	}
}

// Waiters and observers are counted while they are there, and the leader is not
// counted with them.
func TestOthersAreCounted(t *testing.T) {
	l := &library{}
	l.chatty.Store(true)
	s := newSubject(t, l, true, true)
	waiting, err := s.contended(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	steady, err := s.steady(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := figures(s.library, []counted{waiting, steady})
	for _, f := range []results.Figure{find(all, Waiting, 1, "requests"), find(all, Observing, 0, "requests")} {
		if len(f.Values) == 0 || f.Most() < 1 {
			t.Errorf("%+v; want the requests of one that never stops", f)
		}
	}
	if f := find(all, Holding, 0, "requests"); len(f.Values) != 1 || f.Most() != 0 {
		t.Errorf("%+v; want no requests of a leader", f)
	}
}

// Who cannot observe has no figure, but a reason.
func TestNothingToObserveWith(t *testing.T) {
	s := newSubject(t, &library{}, false, true)
	c, err := s.steady(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := figures(s.library, []counted{c})
	for _, unit := range []string{"requests", "bytes"} {
		if f := find(all, Observing, 0, unit); len(f.Values) != 0 || !strings.Contains(f.Note, "nothing to observe with") {
			t.Errorf("%+v; want no values and a note", f)
		}
	}
}

// What did not go as it should is an error, and not a figure.
func TestTrouble(t *testing.T) {
	for want, spoil := range map[string]func(*library){
		"no room":                     func(l *library) { l.fails.Store(99) },
		"elected while another leads": func(l *library) { l.two.Store(true) },
		"lost its leadership":         func(l *library) { l.loses.Store(true) },
	} {
		l := &library{}
		spoil(l)
		s := newSubject(t, l, true, true)
		if c, err := s.contended(t.Context(), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, error %v; want %q", c, err, want)
		}
	}
	l := &library{}
	l.blind.Store(true)
	if c, err := newSubject(t, l, true, true).steady(t.Context()); err == nil || !strings.Contains(err.Error(), "ended by itself: blind") {
		t.Errorf("%+v, error %v; want that the observer has ended", c, err)
	}
	// No candidate takes over, and the caller gives up.
	l = &library{}
	l.late.Store(true)
	s := newSubject(t, l, true, true)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for tick := time.NewTicker(time.Millisecond); l.opened.Load() < 4; <-tick.C {
		}
		cancel(errors.New("enough"))
	}()
	if c, err := s.contended(ctx, 2); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("%+v, error %v; want why it gave up", c, err)
	}
}

// What fails is tried again, but not for ever, and not in secret.
func TestFailuresAreTriedAgain(t *testing.T) {
	for fails, wantError := range map[int64]bool{attempts - 1: false, attempts: true} {
		l := &library{}
		l.fails.Store(fails)
		s := newSubject(t, l, true, true)
		var logged []string
		s.o.Log = func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }
		figures, err := s.measure(t.Context())
		if (err != nil) != wantError || (len(figures) == 0) != wantError {
			t.Errorf("%d failures: %d figures, error %v", fails, len(figures), err)
		}
		if len(logged) != attempts-1 || !strings.Contains(logged[0], "fake on zookeeper: attempt 1 of 3: ") || !strings.Contains(logged[0], "no room") {
			t.Errorf("%d failures: it logs %q", fails, logged)
		}
	}
}

func TestMeasure(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "") // both are put back afterwards
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := Measure(t.Context(), Options{TTL: 1500 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "whole seconds") {
		t.Errorf("error %v; want one about the TTL", err)
	}
	if _, err := Measure(t.Context(), Options{TTL: time.Second, Libraries: []peers.Library{{Name: "x", Store: "clay"}}}); err == nil || !strings.Contains(err.Error(), `"clay"`) {
		t.Errorf("error %v; want one that names the store", err)
	}
	// What is left out is not even started.
	var logged []string
	figures, err := Measure(t.Context(), Options{
		TTL: time.Second, Libraries: []peers.Library{{Name: "client-go/timeout", Store: "clay"}},
		Log: func(format string, args ...any) { logged = append(logged, format) },
	})
	if err != nil || len(figures) != 0 || len(logged) != 1 {
		t.Errorf("%v, error %v, logged %q; want that it is left out", figures, err, logged)
	}
}

// What is left out has something in its place, on the same store.
func TestLeftOut(t *testing.T) {
	all := make(map[string]peers.Library)
	for _, l := range peers.All() {
		all[l.Name] = l
	}
	for out, instead := range leftOut {
		if all[out].Store == "" || all[out].Store != all[instead].Store || LeftOut(all[instead]) != "" {
			t.Errorf("%s is left out for %s", out, instead)
		}
	}
}

// A number counts as it is told to.
type number struct{ n atomic.Int64 }

func (n *number) Counts() wire.Counts { return wire.Counts{Requests: n.n.Load(), Open: 7} }

func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b number
		a.n.Store(100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			// At 0.5, 1.5 … seconds: 3 of one, and of the other one more each time.
			for i := int64(1); pause(ctx, 500*time.Millisecond) == nil; i++ {
				a.n.Add(3)
				b.n.Add(i)
				if pause(ctx, 500*time.Millisecond) != nil {
					return
				}
			}
		}()
		all, err := windows(ctx, 3, 2*time.Second, &a, &b)
		if err != nil || len(all) != 2 {
			t.Fatalf("%v, error %v; want two counters", all, err)
		}
		requests := func(n wire.Counts) int64 { return n.Requests }
		if got, want := values(all[0], requests), []float64{6, 6, 6}; !slices.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
		if got, want := values(all[1], requests), []float64{3, 7, 11}; !slices.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
		if all[1][2].Open != 7 {
			t.Errorf("%d connections open; want 7", all[1][2].Open)
		}
		cancel()
		if _, err := windows(ctx, 1, time.Second, &a); err == nil {
			t.Error("it goes on without its context")
		}
	})
}

func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c number
		began := time.Now()
		go func() {
			for range 10 {
				time.Sleep(200 * time.Millisecond)
				c.n.Add(1)
			}
		}()
		// 3 s: it looks every 250 ms.
		if err := quiet(t.Context(), 3*time.Second, &c); err != nil || c.n.Load() != 10 || time.Since(began) > 3*time.Second {
			t.Errorf("error %v after %v and %d requests; want all 10, and no more than a moment later", err, time.Since(began), c.n.Load())
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			for pause(ctx, 100*time.Millisecond) == nil {
				c.n.Add(1)
			}
		}()
		if err := quiet(ctx, 3*time.Second, &c); err == nil || !strings.Contains(err.Error(), "without a pause") {
			t.Errorf("error %v; want that there is no pause", err)
		}
		stop()
	})
}

func TestPings(t *testing.T) {
	if note := pings(stores.ZooKeeper, []wire.Counts{{Requests: 3}, {Requests: 4}}); note != "" {
		t.Errorf("%q without pings", note)
	}
	if note := pings(stores.NATS, []wire.Counts{{Pings: 3}, {Pings: 2}, {Pings: 3}}); !strings.HasPrefix(note, "of them 3 (median)") {
		t.Errorf("%q; want a median of 3", note)
	}
}
