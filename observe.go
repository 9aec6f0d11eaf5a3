package elector

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/elector-go/elector/backends"
)

// Observe returns who leads, as a fresh read shows it, and then every change of
// leader or value, vacancies too: a leader that resigned, one whose lease
// lapsed, a record that is gone. Renewals are not changes. A loop body that
// takes its time gets the latest state next, costs no memory and delays nobody.
//
// Observe reconnects by itself and blocks until there is a change. A pair with
// an error is the last: the cause of ctx when that ends, ErrClosed,
// ErrTokenRegressed when the record goes back to a lower token, or what trying
// again cannot help, such as ErrDenied and ErrForeignRecord.
//
// What it tells is for people and for routing; it may be out of date.
func (e *Elector) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		ctx, cancel := e.joined(ctx)
		defer cancel()
		f := e.follow(ctx)
		defer f.stop()
		err := e.observe(ctx, f, func(l Leader) bool { return yield(l, nil) })
		if err != nil {
			yield(Leader{}, e.fail("observe", err))
		}
	}
}

// observe yields changes until yield says to stop, which is no error.
func (e *Elector) observe(ctx context.Context, f *follower, yield func(Leader) bool) error {
	var shown Leader
	var version backends.Version
	for first := true; ; first = false {
		changed, err := false, error(nil)
		if !first {
			changed, err = f.wait(ctx, version, e.lapse(shown))
		}
		// That a lease lapsed is said only after a fresh read: what is pushed
		// may be late.
		if !changed && err == nil {
			err = f.readNow(ctx)
		}
		if err != nil {
			return err
		}
		e.mutex.Lock()
		r := e.sighting.record
		e.mutex.Unlock()
		version = r.Version
		l := e.leader(r)
		if !r.Exists() {
			l.Token = shown.Token
		}
		if l.Token < shown.Token {
			return fmt.Errorf("%w (token %d after %d)", ErrTokenRegressed, l.Token, shown.Token)
		}
		if first || l != shown {
			if !yield(l) {
				return nil
			}
		}
		shown = l
	}
}

// lapse returns the monotonic time at which the lease that the record shows
// will have lapsed, 0 if none can or that was shown already.
func (e *Elector) lapse(shown Leader) time.Duration {
	if shown.Vacant() {
		return 0
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.sighting.since + e.o.challenge(e.sighting.record.TTL)
}
