package elector

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/rule"
)

// Each process decodes the extensions of a state once, however often it asks who is next, and
// those of a renewal not at all.
func TestDecodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		candidate := func(id string, priority int) *Elector {
			e, err := New(store.Handle(), "decoded", &Options{ID: id, Priority: priority, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			return e
		}
		first, next := candidate("first", 0), candidate("next", 5)
		expect := func(when string, e *Elector, want int64) {
			t.Helper()
			synctest.Wait()
			if n := e.annex.Decoded.Swap(0); n != want {
				t.Errorf("%s, %s has decoded %d states, not %d", when, e.o.ID, n, want)
			}
		}
		l, err := first.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leads := make(chan error, 1)
		go func() {
			_, err := next.Campaign(t.Context())
			leads <- err
		}()
		time.Sleep(first.o.TTL)
		for _, e := range []*Elector{first, next} {
			expect("after an acquisition and a bid", e, 2)
		}
		time.Sleep(10 * first.o.RenewEvery)
		p := &bidding{e: next, due: rule.Never}
		for range 10 { // a whole pass
			s := next.view.Snapshot()
			next.turn(s)
			next.yields()
			next.goesFirst(s)
			next.heldBy(s.Record)
			p.next(s)
		}
		for _, e := range []*Elector{first, next} {
			expect("after ten renewals", e, 0)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-leads; err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * first.o.RenewEvery)
		expect("after a release and an acquisition", next, 2)
	})
}
