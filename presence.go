package elector

import (
	"context"

	"github.com/elector-go/elector/backends"
)

// A store may show by a mark, besides the record, that a holder is present; see
// backends.PresenceWatcher. Removing the mark deposes the holder: its lease ends
// at once, and it then waits until another candidate has led, for at most
// TTL*(1+ClockDrift). The mark is no evidence of anything else.

// watchPresence watches the mark of the acquisition that made r, for as long as
// the lease lasts.
func (l *Lease) watchPresence(r backends.Record) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.ctx))
	l.mutex.Lock()
	over := l.status.Load().phase.over()
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
		backoff := e.newBackoff("watching the mark of presence")
		defer backoff.close()
		for ctx.Err() == nil {
			start := e.clock.Now().Mono
			err := e.requests.WatchPresence(ctx, e.name, r)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				err = errWatchEnded
			}
			f := &failure{kindOf(err), err}
			e.traceRequest(ctx, attending, e.clock.Now().Mono-start, f)
			if f.kind == presenceLost {
				l.move(deposed, none, l.lostBecause(err))
				return
			}
			if e.clock.Now().Mono-start > e.o.RenewEvery {
				backoff.over() // a watch that breaks at once each time does not work
			}
			if !backoff.pause(ctx, f) {
				return
			}
		}
	}()
}
