package conformance

import (
	"context"
	"sync/atomic"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// isRelease reports whether a call releases the record.
func isRelease(c fault.Call) bool { return c.Op == "swap" && c.Next.Vacant() }

// A releaseOrder checks at each release that the lease has ended before. A slow
// machine may not see the answer of a release, which is then tried again.
type releaseOrder struct {
	s        *suite
	sent     atomic.Int64
	answered atomic.Uint64 // the token of the latest acquisition of which the store knows that it is over
}

// watchRelease sets a fault that changes nothing and checks guarantee 8: the lease
// is not valid and its context has ended before the record is released.
func (c *candidate) watchRelease(l *elector.Lease) *releaseOrder {
	o := &releaseOrder{s: c.el.s}
	c.faults.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
		return o.send(ctx, call, send, func() {
			if l.Check() == nil || l.Context().Err() == nil {
				o.s.Errorf("the lease and its context end before the record is released: Check returned %v and the context has %v (guarantee 8)", l.Check(), l.Context().Err())
			}
		})
	})
	return o
}

// send sends a call, and checks first if it is a release.
func (o *releaseOrder) send(ctx context.Context, c fault.Call, send fault.Send, check func()) (backends.Record, error) {
	if !isRelease(c) {
		return send(ctx)
	}
	o.sent.Add(1)
	if o.answered.Load() == c.Prev.Token {
		o.s.Errorf("the record is released once: it was released again after the store had answered")
	}
	check()
	r, err := send(ctx)
	if err == nil {
		o.answered.Store(c.Prev.Token)
	}
	return r, err
}

func (o *releaseOrder) happened() {
	o.s.Helper()
	if o.sent.Load() == 0 {
		o.s.Errorf("the record is released: no release was sent")
	}
}

// res/order: the context ends before the record is released, and Check fails from
// then on.
func resignOrder(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), s.open()
	for _, resign := range []func(*elector.Lease) error{
		func(l *elector.Lease) error { return l.Release(s.context()) },
		func(*elector.Lease) error { return a.Resign(s.context()) },
	} {
		l := a.lead()
		order := a.watchRelease(l)
		s.must(resign(l), "resigning")
		order.happened()
		s.is(l.Check(), elector.ErrResigned, "Check after Resign")
		s.is(context.Cause(l.Context()), elector.ErrResigned, "the cause of the context after Resign")
		if r := el.record(b); !r.Vacant() || elector.Token(r.Token) != l.Token() {
			s.Errorf("after Resign the record is %v", r)
		}
		s.must(l.Release(s.context()), "resigning again")
		s.is(a.Resign(s.context()), elector.ErrNotLeader, "Elector.Resign with nothing to resign")
	}
}

// res/run-waits: Run keeps the lease while its worker drains, and releases the
// record only after the worker has returned.
func runWaits(s *suite) {
	s.drains()
	s.ignores()
}

// drains is runWaits for a worker that takes a while to stop.
func (s *suite) drains() {
	el := s.election("")
	o := s.brisk()
	o.ReleaseTimeout = 2 * watchdog
	a, b := el.join(o), el.join(s.brisk())
	run := a.run(drain)
	l, next := run.lease(), b.challenge(a)
	run.stop()
	wait(s, run.stopped, "the worker's context ends with Run's")
	a.renewals(2)
	s.must(l.Check(), "Check while the worker drains")
	next.waits("the worker drains")
	close(run.finish)
	s.must(run.ended(), "Run's result")
	run.releases.happened()
	s.is(l.Check(), elector.ErrResigned, "Check after Run returned")
	next.won("a worker that returned is replaced")
}

// ignores is runWaits for a worker that ignores its context. It loses the lease
// after ReleaseTimeout, and the record is not released, so that a successor waits.
func (s *suite) ignores() {
	el := s.election("-ignores")
	o := s.expiring(2)
	o.ReleaseTimeout = s.short().TTL
	a, b := el.join(o), el.join(o)
	run := a.run(ignore)
	l, next := run.lease(), b.challenge(a)
	run.stop()
	wait(s, l.Context().Done(), "the worker's context ends with Run's")
	next.won("a worker that does not return is replaced")
	s.is(l.Check(), elector.ErrLost, "Check of a worker that does not return")
	s.waited(next, a.writes.latest(), o.TTL)
	close(run.finish)
	s.is(run.ended(), elector.ErrLost, "Run's result when its worker was too slow")
	if b.Elector.ID() != el.record(s.open()).Holder {
		s.Errorf("the successor's record is gone")
	}
}

// res/handover: a resignation wakes the successor, which does not wait for C and
// writes once.
func handover(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), el.join(s.long())
	l := a.lead()
	next := b.challenge(a)
	a.renewals(2)
	next.waits("another candidate leads")
	b.wrote(0, "a waiter writes no more than a bid")
	s.must(l.Release(s.context()), "resigning")
	// C is longer than the watchdog.
	next.won("a leader that resigned is replaced without waiting for C")
	b.wrote(1, "the successor acquires by one write")
}

// res/fail-retry: a leader whose release failed does not lead, and may lead again at once. A
// release is tried again while a fault lasts.
func failRetry(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.ReleaseTimeout = s.short().TTL
	a, b := el.join(o), el.join(s.long())
	b.lead()
	s.must(b.Resign(s.context()), "resigning") // what replaces no record has rules of its own
	for _, resign := range []func(*elector.Lease) error{
		func(l *elector.Lease) error { return l.Release(s.context()) },
		func(*elector.Lease) error { return a.Resign(s.context()) },
	} {
		l := a.lead()
		a.faults.Always(fault.RequestLost)
		s.fails(resign(l), "a resignation whose release failed")
		s.is(l.Check(), elector.ErrResigned, "Check after a resignation whose release failed")
		_, err := a.Token()
		s.is(err, elector.ErrResigned, "Token after a resignation whose release failed")
		wait(s, l.Context().Done(), "the context ends with a resignation whose release failed")
		if _, err := b.TryCampaign(s.context()); err == nil {
			s.Errorf("a candidate leads although the release failed")
		}
		a.faults.Always(nil)
		s.fails(resign(l), "resigning again")
		s.is(l.Check(), elector.ErrResigned, "Check after resigning again")
		a.lead() // C is longer than the watchdog
		s.must(a.Resign(s.context()), "resigning")
	}
	a.hit()

	// A fault that passes is retried.
	var releases atomic.Int64
	o.ReleaseTimeout = 2 * watchdog
	c := el.join(o)
	c.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if isRelease(c) && releases.Add(1) <= 2 {
			return fault.RequestLost(ctx, c, send)
		}
		return send(ctx)
	})
	l := c.lead()
	s.must(l.Release(s.context()), "a resignation whose first request is lost")
	b.lead()
	if n := releases.Load(); n < 3 {
		s.Errorf("the release is tried until it works: it was tried %d times", n)
	}
	s.must(b.Resign(s.context()), "resigning")

	// A failed release is no reason for Close to fail.
	a.lead()
	a.faults.Always(fault.RequestLost)
	s.fails(a.Resign(s.context()), "a resignation whose release failed")
	a.faults.Always(nil)
	s.must(a.Close(), "closing a candidate that no longer leads")
}

// res/foreign: a release that arrives after a successor acquired changes nothing.
func foreign(s *suite) {
	el := s.election("")
	o := s.short()
	o.ReleaseTimeout = 2 * watchdog
	a, b := el.join(o), el.join(s.brisk())
	l := a.lead()
	next := b.challenge(a)
	release, applied := make(chan struct{}), make(chan error, 64)
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		<-release
		r, err := send(context.WithoutCancel(ctx))
		if isRelease(c) {
			applied <- err
		}
		return r, err
	})
	resigned := make(chan error, 1)
	go func() { resigned <- l.Release(s.context()) }()
	wait(s, l.Context().Done(), "the context ends with Release, before the release")
	second := next.won("a leader whose release is late is replaced")
	b.renewals(1)
	close(release)
	s.is(wait(s, applied, "the late release arrives"), backends.ErrConflict, "the late release")
	wait(s, resigned, "Release returns") // the lease was over before the answer: it may not know
	b.renewals(2)
	s.must(second.Check(), "the successor's lease after the late release")
	b.holds(second, "after the late release")
	a.hit()
}
