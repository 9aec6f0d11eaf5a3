package elector

import (
	"context"
	"errors"

	"github.com/elector-go/elector/backends"
)

// A store may show that a holder is there by a mark besides the record, see
// backends.PresenceWatcher. Whoever removes the mark deposes the holder: its
// lease ends at once, and it stands back for TTL*(1+ClockDrift), so that
// somebody else gets the office. The mark is no evidence of anything else.

// watchPresence watches the mark of the acquisition that made r, for as long as
// the lease lasts.
func (l *Lease) watchPresence(w backends.PresenceWatcher, r backends.Record) {
	ctx, cancel := context.WithCancel(context.Background())
	l.mutex.Lock()
	over := l.term.Load().over != nil
	l.unwatch = cancel
	l.mutex.Unlock()
	if over {
		cancel()
		return
	}
	e := l.e
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		trouble := e.newTrouble("watching the mark of presence")
		for ctx.Err() == nil {
			start := e.clock.Now().Mono
			err := w.WatchPresence(ctx, e.name, r)
			if ctx.Err() != nil {
				return
			}
			e.traceRequest("watch-presence", e.clock.Now().Mono-start, err)
			if errors.Is(err, ErrDeposed) {
				l.end(l.lostBecause(err))
				return
			}
			if e.clock.Now().Mono-start > e.o.RenewEvery {
				trouble.over() // one that breaks at once each time is still trouble
			}
			if trouble.pause(ctx, err) != nil {
				return
			}
		}
	}()
}

// stepDown tells the store of a lease that was deposed, so that a successor need
// not wait until the record expires, once the work done under it has surely
// stopped: the worker in Run has returned, or the caller campaigns again. It
// does nothing for other leases, and a second time. Unless there is a successor
// already this candidate then counts the election as held for a while: it would
// be the quickest to win it back.
func (l *Lease) stepDown() {
	if !l.deposed() {
		return
	}
	l.down.Do(func() {
		l.vacate()
		e := l.e
		e.mutex.Lock()
		defer e.mutex.Unlock()
		if e.sighting.record.Attempt.Nonce == l.nonce {
			e.sighting.distrust(e.clock.Now().Mono, &e.o)
		}
	})
}

// deposed reports whether the lease ended because its mark was removed.
func (l *Lease) deposed() bool { return errors.Is(l.term.Load().over, ErrDeposed) }
