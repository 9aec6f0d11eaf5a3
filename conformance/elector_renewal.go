package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// overwrite replaces the record by that of a successor that this process does not
// know.
func (el *election) overwrite(b backends.Backend, holder string) backends.Record {
	el.s.Helper()
	return el.edit(b, func(r *backends.Record) {
		r.Holder, r.Value, r.Token, r.Attempt = holder, "", r.Token+1, backends.Attempt{Nonce: usurper, Sequence: 1}
	})
}

// ren/conflict: a leader whose record was replaced learns it from its next renewal,
// long before H, and writes nothing.
func renewConflict(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), s.open()
	l := a.lead()
	a.renewals(1)
	before := a.events.length() // the lease may have ended when overwrite returns
	usurped := el.overwrite(b, usurper)
	at := a.events.length()
	// When Proclaim returns, Check must fail already.
	proclaimed := make(chan error, 1)
	var valid atomic.Bool
	go func() {
		err := l.Proclaim(s.context(), "mine")
		valid.Store(l.Check() == nil)
		proclaimed <- err
	}()
	s.is(wait(s, proclaimed, "Proclaim ends with the lease"), elector.ErrLost, "Proclaim")
	if valid.Load() {
		s.Errorf("the lease was valid after its renewal returned with a conflict")
	}
	wait(s, l.Context().Done(), "a conflict ends the lease's context")
	a.await(before, "ended", "a conflict ends the lease")
	if a.events.countFrom(at, "renewed") != 0 {
		s.Errorf("the lease was renewed after its record had been replaced")
	}
	s.is(a.Resign(s.context()), elector.ErrNotLeader, "resigning a lost lease")
	if r := el.record(b); r.Version != usurped.Version {
		s.Errorf("the successor's record was changed to %v", r)
	}
}

// ren/transient: errors for half of H do not lose the lease.
func renewTransient(s *suite) {
	el := s.election("")
	o := s.expiring(6)
	a := el.join(o)
	l := a.lead()
	// Until less than half of H is left.
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if l.Remaining() > a.hold/2 {
			return fault.RequestLost(ctx, c, send)
		}
		return send(ctx)
	})
	a.renewals(1)
	a.faults.Always(nil)
	s.must(l.Check(), "the lease after errors for half of H")
	if a.faults.Hits() < 3 {
		s.Errorf("%d requests failed, not several", a.faults.Hits())
	}
	a.renewals(1)
	s.must(l.Check(), "the lease after the errors ended")
}

// ren/one-hang: a renewal that hangs, even one that ignores its context, is given
// up in time for another.
func renewOneHang(s *suite) {
	el := s.election("")
	a := el.join(s.observable())
	release := make(chan struct{})
	l := a.lead()
	a.faults.Next("swap", fault.Hang)
	a.faults.Next("load", fault.Hang)
	a.renewals(2)
	a.faults.Next("swap", fault.Deaf(release))
	a.renewals(2)
	s.must(l.Check(), "the lease after one renewal hung")
	a.hit()
	close(release)
}

// ren/hung: no call returns. The lease ends by H all the same, and Check never
// waits.
func renewHung(s *suite) {
	el := s.election("")
	a := el.join(s.short())
	release := make(chan struct{})
	var hanging atomic.Int64
	l := a.lead()
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		hanging.Add(1)
		defer hanging.Add(-1)
		return fault.Deaf(release)(ctx, c, send)
	})
	s.is(a.lapses(l, "all calls hang"), elector.ErrLost, "Check while all calls hang")
	a.cutOff()
	if hanging.Load() == 0 {
		s.Errorf("no call hangs")
	}
	s.is(context.Cause(l.Context()), elector.ErrLost, "the cause of the context")
	_, err := a.Token()
	s.is(err, elector.ErrLost, "Token while all calls hang")
	close(release)
	a.hit()
}

// ren/resurrect: a renewal that is applied and answered after H does not bring the
// lease back.
func resurrect(s *suite) {
	el := s.election("")
	o := s.short()
	o.RenewEvery = o.TTL / 24 // a renewal is under way before a slow machine loses the lease
	o.RequestTimeout = o.RenewEvery
	a, b := el.join(o), s.open()
	release := make(chan struct{})
	applied := make(chan error, 64)
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) { // from the first renewal on
		if c.Op != "swap" || c.Prev.Attempt.Nonce != c.Next.Attempt.Nonce {
			return send(ctx)
		}
		<-release
		r, err := send(context.WithoutCancel(ctx))
		applied <- err
		return r, err
	})
	l := a.lead()
	a.lapses(l, "all renewals are late")
	before := el.record(b)
	close(release)
	// Several renewals replace the same state, and one is applied.
	err := wait(s, applied, "the late renewal is applied")
	for errors.Is(err, backends.ErrConflict) {
		err = wait(s, applied, "the late renewal is applied")
	}
	s.must(err, "the late renewal")
	if r := el.record(b); r.Attempt == before.Attempt || r.Attempt.Nonce != before.Attempt.Nonce {
		s.Errorf("a late renewal is applied: the record was %v and is %v", before, r)
	}
	s.is(l.Check(), elector.ErrLost, "Check after a late renewal")
	a.faults.Always(nil)
	again := a.lead() // immediately, because the record is its own
	s.grows(l.Token(), again.Token(), "after a late renewal")
	s.is(l.Check(), elector.ErrLost, "Check of the lapsed lease while its process leads again")
	a.hit()
}

// ren/stall: a worker that no longer calls Check loses the lease, and one that
// calls it does not.
func stall(s *suite) {
	el := s.election("")
	o := s.short()
	o.StallTimeout = 2 * o.TTL
	o.RenewEvery = o.TTL / 4
	o.RequestTimeout = o.RenewEvery
	o.TTL *= 4 // a slow machine does not end it while the worker works
	a := el.join(o)
	l := a.lead()
	end := time.Now().Add(3 * o.StallTimeout / 2)
	tick := time.NewTicker(o.StallTimeout / 100)
	defer tick.Stop()
	for time.Now().Before(end) {
		s.must(l.Check(), "the lease while the worker calls Check")
		<-tick.C
	}
	s.must(l.Check(), "the lease while the worker calls Check")
	a.renewals(1)
	at := a.events.length()
	wait(s, l.Context().Done(), "a worker that stops calling Check loses its lease")
	s.is(l.Check(), elector.ErrLost, "Check of a worker that had stopped calling it")
	renewed := a.events.countFrom(at, "renewed")
	// Renewals start at least an interval apart, and one was under way.
	if most := int(o.StallTimeout/o.RenewEvery) + 2; renewed > most {
		s.Errorf("%d renewals after the last Check, more than %d fit into StallTimeout", renewed, most)
	}
}

// ren/unhealthy: an unhealthy leader resigns, does not campaign, and campaigns again
// when it is healthy.
func unhealthy(s *suite) {
	el := s.election("")
	b := s.open()
	var failing atomic.Bool
	asked := make(chan struct{}, 1)
	o := s.brisk()
	o.Healthy = func(context.Context) error {
		if failing.Load() {
			select {
			case asked <- struct{}{}:
			default:
			}
			return errors.New("cannot reach the mail server")
		}
		return nil
	}
	a := el.join(o)
	l := a.lead()
	at := a.events.length()
	order := a.watchRelease(l)
	failing.Store(true)
	wait(s, l.Context().Done(), "an unhealthy leader resigns")
	s.is(context.Cause(l.Context()), elector.ErrUnhealthy, "the cause of an unhealthy leader's context")
	s.is(l.Check(), elector.ErrResigned, "Check of an unhealthy leader")
	s.must(a.await(at, "released", "an unhealthy leader releases the record").err, "an unhealthy leader's release")
	order.happened()

	_, err := a.TryCampaign(s.context())
	s.is(err, elector.ErrUnhealthy, "TryCampaign while unhealthy")
	writes := a.faults.Count("swap")
	next := a.campaign(s.context())
	for range 4 {
		wait(s, asked, "Campaign asks Healthy while a candidate is unhealthy")
	}
	next.waits("it is unhealthy")
	if r := el.record(b); !r.Vacant() || a.faults.Count("swap") != writes {
		s.Errorf("an unhealthy candidate writes nothing: it wrote %d times, and the record is %v", a.faults.Count("swap")-writes, r)
	}
	failing.Store(false)
	next.won("a candidate that is healthy again leads")
}
