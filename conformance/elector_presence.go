package conformance

import (
	"context"
	"sync/atomic"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// shownPresence reports whether the store shows a holder's presence.
func (s *suite) shownPresence() bool { return s.present() != nil }

// deposed: a leader whose mark of presence is removed loses its lease at once.
// When it campaigns again, and so says that its work has stopped, it tells the
// store, so that a successor need not wait for C, and stands back itself. Nobody
// renews and nobody's time is over within the case, and C is
// longer than the watchdog's time.
func deposed(s *suite) {
	if !s.shownPresence() {
		return
	}
	el := s.election("")
	a, b := el.join(s.long()), el.join(s.long())
	l := a.lead()
	order := a.watchRelease(l)
	next := b.campaign(s.context())
	b.sees(a)
	s.depose(el.name)
	wait(s, l.Context().Done(), "a leader whose mark is removed loses its lease at once")
	s.is(l.Check(), elector.ErrLost, "Check of a deposed leader")
	s.is(l.Check(), elector.ErrDeposed, "Check of a deposed leader")
	s.is(context.Cause(l.Context()), elector.ErrDeposed, "the cause of a deposed leader's context")
	next.waits("the deposed leader has not said that its work has stopped")
	s.is(a.enter(), elector.ErrHeld, "TryCampaign of one that was deposed")
	next.won("a deposed leader is replaced without waiting for C")
	order.happened()
	s.must(b.Resign(s.context()), "resigning")
	s.is(a.enter(), elector.ErrHeld, "TryCampaign of one that was deposed, within C")

	// The next renewal finds it out too, if no watch did.
	el = s.election("-renewal")
	blind := &blindBackend{Backend: s.open()}
	c := el.joinOn(blind, s.brisk())
	l = c.lead()
	c.renewals(1)
	s.depose(el.name)
	wait(s, l.Context().Done(), "a renewal finds that the mark was removed")
	s.is(l.Check(), elector.ErrDeposed, "Check of a deposed leader")
}

// A blindBackend cannot watch anything.
type blindBackend struct{ backends.Backend }

// runDeposed: a deposed leader's worker is told to stop at once; the store is
// told when it has returned, and Run campaigns again.
func runDeposed(s *suite) {
	if !s.shownPresence() {
		return
	}
	el := s.election("")
	a, b := el.join(s.long()), el.join(s.long())
	var returned atomic.Bool
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if isRelease(c) && !returned.Load() {
			s.Errorf("the store is told before the worker returned")
		}
		return send(ctx)
	})
	ctx, stop := context.WithCancel(s.context())
	leases, finish, done := make(chan *elector.Lease, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- a.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
			leases <- l
			<-ctx.Done()
			<-finish
			returned.Store(true)
			return nil
		})
	}()
	l := wait(s, leases, "Run calls the worker")
	next := b.campaign(s.context())
	b.sees(a)
	s.depose(el.name)
	wait(s, l.Context().Done(), "a deposed leader's worker is told to stop")
	s.is(l.Check(), elector.ErrDeposed, "Check of a deposed leader")
	next.waits("the deposed leader's worker has not returned")
	close(finish)
	next.won("a deposed leader is replaced once its worker has returned")
	stop()
	s.must(wait(s, done, "Run returns"), "Run that is told to stop while it waits")
	if n := a.events.count("acquired"); n != 1 {
		s.Errorf("a deposed leader led %d times; it stands back", n)
	}
}
