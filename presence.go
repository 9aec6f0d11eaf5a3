package elector

import "context"

// A store may show by a mark, besides the record, that a holder is present; see
// backends.PresenceWatcher. Removing the mark deposes the holder: its lease ends
// at once, and it then waits until another candidate has led, for at most
// TTL*(1+ClockDrift). The mark is no evidence of anything else.

// watchPresence watches the mark of the acquisition, for as long as
// the lease lasts.
func (l *Lease) watchPresence() {
	e := l.e
	ctx, cancel := context.WithCancel(l.lasting)
	l.unwatch = cancel
	watch := func() error { return e.requests.WatchPresence(ctx, e.name, l.won) }
	works := func() bool { return true }
	e.active.Add(1)
	go e.keepWatching(ctx, attending, e.newBackoff("watching the mark of presence"), watch, works, func(f *failure) (over bool) {
		if f.kind == presenceLost {
			l.move(deposed, none, l.lostBecause(f.err))
			return true
		}
		return false
	})
}
