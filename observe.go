package elector

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/rule"
)

// A Leader describes who leads, according to an election's record.
type Leader struct {
	ID    string        // of the leader, or the last one; empty when it resigned
	Token Token         // of its acquisition; 0 if the election never had a leader
	Value string        // that the leader published
	TTL   time.Duration // of its lease

	// Lapsed is set if the leader has not renewed for TTL*(1+ClockDrift) while
	// this process watched: its lease is over although it did not resign, and no
	// candidate has taken over yet.
	Lapsed bool

	// Unchanged is how long this process has seen the record as it is. A new
	// Elector cannot know whether the leader is alive: look again after
	// TTL*(1+ClockDrift), or use Observe.
	Unchanged time.Duration

	// Successor is the ID of the candidate that should lead next, if the record names one:
	// see ResignTo, RequestResign and Options.Priority.
	Successor string

	// RequestedBy is the ID of the process that has requested the leader to
	// resign, if one has, and Draining is set once the leader has met the request:
	// see RequestResign.
	RequestedBy string
	Draining    bool

	// Pause is set while the election is paused, see Elector.Pause, as far as this process
	// knows: a new Elector cannot know how much of Pause.For is over.
	Pause *Pause

	// Lossy is why the store may lose acknowledged writes, for people: another process
	// may lead at the same time. It is empty on a store that keeps them.
	Lossy string
}

// Vacant reports whether the election has no leader: it never had one, the
// leader resigned, or its lease lapsed.
func (l Leader) Vacant() bool { return l.ID == "" || l.Lapsed }

// same reports whether two Leaders are the same except for the time that has
// passed, and for what is to come.
func (l Leader) same(m Leader) bool {
	paused := l.Pause == nil && m.Pause == nil || l.Pause != nil && m.Pause != nil && *l.Pause == *m.Pause
	return paused && l.now() == m.now()
}

func (l Leader) now() Leader {
	return Leader{ID: l.ID, Token: l.Token, Value: l.Value, TTL: l.TTL, Lapsed: l.Lapsed}
}

// leader returns who leads, according to a state just seen.
func (e *Elector) leader(r backends.Record) Leader {
	q := annex.RequestOf(r)
	l := Leader{ID: r.Holder, Token: Token(r.Token), Value: r.Value, TTL: r.TTL, Successor: annex.BidOf(r).ID, RequestedBy: q.By, Draining: q.Draining, Lossy: e.lossy}
	paused := true
	if s := e.view.Snapshot(); s.Any && r.Version == s.Record.Version {
		now := e.now()
		l.Unchanged = now - s.Since
		l.Lapsed = !r.Vacant() && now >= s.Lapse
		paused = now < pausedUntil(s)
	}
	if p := annex.PauseOf(r); p != nil && paused {
		l.Pause = &Pause{Reason: p.Reason, For: p.For, By: p.By}
	}
	return l
}

// heldBy returns why a state just seen may not be taken over.
func (e *Elector) heldBy(r backends.Record) *failure {
	err := &HeldError{Leader: e.leader(r)}
	name := rule.Critical(r)
	switch {
	case name != "":
		err.Reason = "its record has the extension " + name + ", which a newer version of this library wrote and this version does not know; upgrade this process"
	case err.Leader.ID == "":
		err.Reason = "its record names no leader, but has just changed, vanished or gone back, so that a leader seen before may still lead. It is free TTL*(1+ClockDrift) later"
	}
	return &failure{holding, err}
}

// Leader reads the record once and returns who leads. The answer may be out of
// date at once: use it for display and routing, never as a reason to write. Leader
// blocks for at most RequestTimeout, or three times that if changes overtake its
// reads.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	if err := e.begin(ctx); err != nil {
		return Leader{}, e.fail("read", err)
	}
	defer e.active.Done()
	r, f := e.load(ctx, e.o.RequestTimeout, looking)
	if f != nil {
		return Leader{}, e.fail("read", f.err)
	}
	return e.leader(r), nil
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
		w := e.watch(ctx, looking, "observe", place)
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
	var version backends.Version
	for first := true; ; first = false {
		changed, err := false, error(nil)
		if !first {
			var lapse time.Duration
			if s := e.view.Snapshot(); !shown.Vacant() {
				lapse = s.Lapse
			} else if shown.Pause != nil {
				lapse = pausedUntil(s)
			}
			changed, err = w.wait(ctx, version, lapse)
		}
		// Report a lapse only after a fresh read: pushes may be late.
		if !changed && err == nil {
			err = w.readNow(ctx)
		}
		if err != nil {
			return err
		}
		r := e.view.Snapshot().Record
		version = r.Version
		l := e.leader(r)
		if !r.Exists() {
			l.Token = shown.Token
		}
		if l.Token < shown.Token {
			return fmt.Errorf("%w (token %d after %d)", ErrTokenRegressed, l.Token, shown.Token)
		}
		if first || !l.same(shown) {
			if !yield(l) {
				return nil
			}
		}
		shown, w.patient = l, true
	}
}
