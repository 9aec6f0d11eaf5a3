package conformance

import (
	"context"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// shownPresence reports whether the backend is a PresenceWatcher.
func (s *suite) shownPresence() bool { return s.present() != nil }

// res/deposed: a leader whose mark of presence is removed loses its lease
// immediately. When it campaigns again, its work has stopped: it releases the
// record, so that a successor need not wait for C, and does not acquire it itself.
// In this case no lease is renewed or expires, and C is longer than the watchdog.
func deposed(s *suite) {
	if !s.shownPresence() {
		return
	}
	el := s.election("")
	a, b := el.join(s.long()), el.join(s.long())
	l := a.lead()
	order := a.watchRelease(l)
	next := b.challenge(a)
	s.depose(el.name)
	wait(s, l.Context().Done(), "a leader whose mark is removed loses its lease immediately")
	s.is(l.Check(), elector.ErrLost, "Check of a deposed leader")
	s.is(l.Check(), elector.ErrDeposed, "Check of a deposed leader")
	s.is(context.Cause(l.Context()), elector.ErrDeposed, "the cause of a deposed leader's context")
	next.waits("the deposed leader may still work")
	s.is(a.enter(), elector.ErrHeld, "TryCampaign of a deposed candidate")
	next.won("a deposed leader is replaced without waiting for C")
	order.happened()
	s.must(b.Resign(s.context()), "resigning")
	s.must(a.enter(), "TryCampaign of a deposed candidate, after another one has led")

	// Without WatchPresence the next renewal notices it.
	el = s.election("-renewal")
	blind := &blindBackend{Backend: s.open()}
	c := el.joinOn(blind, s.brisk())
	l = c.lead()
	c.renewals(1)
	s.depose(el.name)
	wait(s, l.Context().Done(), "a renewal notices that the mark was removed")
	s.is(l.Check(), elector.ErrDeposed, "Check of a deposed leader")
}

// A blindBackend is not a Watcher.
type blindBackend struct{ backends.Backend }

// run/deposed: a deposed leader's worker is stopped immediately. When it has
// returned, Run releases the record and campaigns again.
func runDeposed(s *suite) {
	if !s.shownPresence() {
		return
	}
	el := s.election("")
	a, b := el.join(s.long()), el.join(s.long())
	run := a.run(drain)
	l, next := run.lease(), b.challenge(a)
	s.depose(el.name)
	wait(s, l.Context().Done(), "a deposed leader's worker is stopped")
	s.is(l.Check(), elector.ErrDeposed, "Check of a deposed leader")
	next.waits("the deposed leader's worker has not returned")
	working := a.events.length()
	close(run.finish)
	next.won("a deposed leader is replaced once its worker has returned")
	a.await(working, "waits", "a deposed leader campaigns again")
	run.stop()
	s.must(run.ended(), "Run that is stopped while it waits")
	if n := a.events.count("acquired"); n != 1 {
		s.Errorf("a deposed leader does not acquire again within C: it led %d times", n)
	}
}
