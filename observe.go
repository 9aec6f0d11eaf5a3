package elector

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/store"
)

// Leader reads the record once and returns who leads. The answer may be out of
// date at once: use it for display and routing, never as a reason to write. Leader
// blocks for at most RequestTimeout, or three times that if changes overtake its
// reads.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	r, err := e.recorded(ctx)
	if err != nil {
		return Leader{}, err
	}
	return e.leader(r), nil
}

// recorded reads the record once, for a user.
func (e *Elector) recorded(ctx context.Context) (backends.Record, error) {
	if err := e.begin(ctx); err != nil {
		return backends.Record{}, e.fail("read", err)
	}
	defer e.active.Done()
	r, f := e.loadOnce(ctx)
	return r, e.fail("read", f.shown())
}

// Observe yields who leads, as a fresh read shows it, and then each change of
// leader or value. Vacancies are changes: a leader that resigned, a lease that
// lapsed, a record that is gone. So are pauses, and their ends. Renewals, successors and requests to resign are not. A slow
// loop body gets the latest state next; it costs no memory and delays no other process.
//
// Observe reconnects by itself and blocks until there is a change. A pair with
// an error is the last one: the cause of ctx when that ends, ErrClosed,
// ErrTokenRegressed when the record goes back to a lower token, or, before any pair
// without an error, a permanent one, such as ErrDenied and ErrForeignRecord. After the first
// pair these are logged at level Error and tried again: see Campaign.
//
// What Observe yields may be out of date: use it for display and routing. An Elector
// that observes watches the leader: if the leader crashes, a campaign on the same
// Elector takes over as early as one that has waited all the time.
func (e *Elector) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := e.begin(ctx); err != nil {
			yield(Leader{}, e.fail("observe", err))
			return
		}
		e.active.Done() // a loop body may call Close
		ctx, cancel := e.joined(ctx)
		defer cancel()
		place := e.reading()
		defer place.Leave()
		w := e.watch(ctx, store.Look, "observe", place)
		defer w.cancel()
		err := e.observe(ctx, w, func(l Leader) bool { return yield(l, nil) })
		if err != nil {
			yield(Leader{}, e.fail("observe", err))
		}
	}
}

// observe yields changes until yield returns false, which is no error.
func (e *Elector) observe(ctx context.Context, w *watcher, yield func(Leader) bool) error {
	var shown Leader
	err := w.readNow(ctx)
	for first := true; err == nil; first = false {
		r := e.view.Snapshot().Record
		l := e.leader(r)
		if !r.Exists() {
			l.Token = shown.Token
		}
		if l.Token < shown.Token {
			return fmt.Errorf("%w (token %d after %d)", ErrTokenRegressed, l.Token, shown.Token)
		}
		if (first || !l.same(shown)) && !yield(l) {
			return nil
		}
		shown, w.patient = l, true
		var lapse time.Duration
		if s := e.view.Snapshot(); !shown.Vacant() {
			lapse = s.Lapse
		} else if shown.Pause != nil {
			lapse = e.pausedUntil(s)
		}
		changed := false
		if changed, err = w.wait(ctx, r.Version, lapse); err == nil && !changed {
			err = w.readNow(ctx) // report a lapse only after a fresh read: pushes may be late
		}
	}
	return err
}
