package conformance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// counted fails the case if the lease is valid for longer than H after a write was
// sent. from returns when that was, and is asked when the lease has been: a write that is
// sent meanwhile may be the one that the lease counts from.
func (c *candidate) counted(l *elector.Lease, from func() time.Time, rule string) {
	s := c.el.s
	s.Helper()
	now, left := time.Now(), l.Remaining()
	if since := now.Sub(from()); left > c.hold-since {
		s.Errorf("the lease has %v left %v after the write that it counts from was sent, and H is %v: %s (guarantee 2)", left, since, c.hold, rule)
	}
}

// then runs a check and then the fault.
func then(check func(fault.Call), f fault.Fault) fault.Fault {
	return func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		check(c)
		return f(ctx, c, send)
	}
}

// pass is a fault that does nothing.
func pass(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
	return send(ctx)
}

// amb/acquire: the answer to the acquiring write is lost. The candidate leads only
// after a read has shown the write, and the lease counts from when it was sent.
func ambiguousAcquire(s *suite) {
	el := s.election("")
	a := el.join(s.unhurried())
	a.faults.Next("swap", fault.ReplyLost)
	a.faults.Next("load", nil, fault.Hang, then(func(fault.Call) {
		if _, err := a.Token(); err == nil {
			s.Errorf("the candidate leads before a read has shown its write")
		}
	}, pass))
	a.acquires("after the answer to its write was lost")
}

// acquires campaigns while the faults that were set happen, and checks that the
// lease counts from the acquisition's first write.
func (c *candidate) acquires(rule string) *elector.Lease {
	s := c.el.s
	s.Helper()
	// A renewal would hide what the acquisition counted from.
	held := make(chan struct{})
	c.faults.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
		if call.Op == "swap" && call.Next.Token == call.Prev.Token {
			<-held
		}
		return send(ctx)
	})
	l := c.lead()
	c.holds(l, rule)
	r := c.el.record(s.open())
	c.counted(l, func() time.Time { return c.writes.sentAt(backends.Attempt{Nonce: r.Attempt.Nonce, Sequence: 1}) }, rule)
	close(held)
	c.faults.Always(nil)
	c.hit()
	c.renewals(1)
	s.must(l.Check(), "the lease of a leader %s", rule)
	return l
}

// amb/renew: the answer to a renewal is lost, and so is the first read-back. The
// expiry does not change until a read shows the renewal, and then counts from when
// that was sent.
func ambiguousRenew(s *suite) {
	el := s.election("")
	a := el.join(s.unhurried())
	l := a.lead()
	a.renewals(1)
	a.losesAnswer(l, nil)
}

// unhurried are options for leases that are renewed eight times in their TTL,
// with as much time for each request: a disk that takes long to sync must not
// lose answers besides those that the case loses.
func (s *suite) unhurried() elector.Options {
	o := s.expiring(10)
	o.RenewEvery = o.TTL / 8
	o.RequestTimeout = o.RenewEvery
	return o
}

// amb/two-unresolved: two writes have no answer, and the earlier one was applied:
// first of an acquisition, then of a renewal.
func twoUnresolved(s *suite) {
	el := s.election("")
	a := el.join(s.unhurried())
	a.faults.Next("swap", fault.ReplyLost, fault.RequestLost)
	a.faults.Next("load", nil, fault.RequestLost)
	l := a.acquires("after two writes without an answer")
	a.losesAnswer(l, fault.RequestLost)
}

// losesAnswer loses the answer to the next renewal and the first read-back. The
// renewal that follows meets the second fault. The case goes on when the one
// after that has been sent and answered.
func (c *candidate) losesAnswer(l *elector.Lease, second fault.Fault) {
	s := c.el.s
	s.Helper()
	var before atomic.Pointer[time.Time]
	proven := c.writes.latest()
	before.Store(&proven)
	third := make(chan struct{})
	if second == nil {
		second = pass // a conflict, because the first was applied
	}
	c.faults.Next("load", fault.RequestLost, then(func(fault.Call) {
		c.counted(l, func() time.Time { return *before.Load() }, "a renewal without an answer extends nothing")
	}, pass))
	c.faults.Next("swap", then(func(fault.Call) {
		at := c.writes.latest()
		before.Store(&at)
	}, fault.ReplyLost), second, then(func(call fault.Call) {
		c.counted(l, func() time.Time { return c.writes.sentAt(call.Prev.Attempt) }, "it counts from the renewal that was applied")
		close(third)
	}, pass))
	goesOn := make(chan struct{})
	go func() {
		defer close(goesOn)
		select {
		case <-third:
		case <-l.Context().Done():
		}
	}()
	wait(s, goesOn, "after a renewal without an answer the lease is renewed again")
	s.must(l.Check(), "a renewal without an answer does not lose the lease")
	c.renewals(1)
	s.must(l.Check(), "the lease after a renewal without an answer")
	c.hit()
}

// amb/conflict-is-mine: a library or a proxy sends a write twice, and the second
// one conflicts with the first. An acquisition, a renewal and a release succeed
// all the same.
func conflictIsMine(s *suite) {
	el := s.election("")
	a := el.join(s.unhurried())
	a.faults.Next("swap", fault.Twice)
	l := a.acquires("after a conflict with itself")
	at := a.events.length()
	a.faults.Next("swap", fault.Twice)
	a.await(at, "renewed", "a renewal in conflict with itself succeeds")
	a.renewals(1)
	s.must(l.Check(), "the lease after a renewal in conflict with itself")
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if isRelease(c) {
			return fault.Twice(ctx, c, send)
		}
		return send(ctx)
	})
	s.must(l.Release(s.context()), "a release in conflict with itself")
	if r := el.record(s.open()); !r.Vacant() || r.Token != uint64(l.Token()) {
		s.Errorf("after a release in conflict with itself the record is %v", r)
	}
	a.hit()
}

// amb/release: the answer to a release is lost, and a successor acquires before it
// is tried again. The second try does not change the successor's record.
func ambiguousRelease(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.ReleaseTimeout = 2 * watchdog
	o.RequestTimeout = o.RenewEvery
	a, b := el.join(o), el.join(s.brisk())
	l := a.lead()
	next := b.challenge(a)
	won, retried := make(chan struct{}), make(chan struct{})
	var releases atomic.Int64
	var once sync.Once
	a.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if l.Check() == nil {
			return send(ctx)
		}
		if !isRelease(c) && releases.Load() < 2 {
			return fault.RequestLost(ctx, c, send) // cannot read it back
		}
		if releases.Add(1) == 1 {
			return fault.ReplyLost(ctx, c, send)
		}
		<-won
		if isRelease(c) {
			once.Do(func() { close(retried) })
		}
		return send(context.WithoutCancel(ctx))
	})
	resigned := make(chan error, 1)
	go func() { resigned <- l.Release(s.context()) }()
	wait(s, l.Context().Done(), "Release ends the context")
	s.is(l.Check(), elector.ErrResigned, "Check during the release")
	second := next.won("a successor leads after a release whose answer was lost")
	close(won)
	wait(s, retried, "a release whose answer was lost is tried again")
	s.must(wait(s, resigned, "Release returns"), "a release whose answer was lost")
	b.renewals(2)
	s.must(second.Check(), "the successor's lease after the release was tried again")
	b.holds(second, "after the release was tried again")
}

// amb/delayed-write: an acquisition that is applied after its candidate gave up
// does not make it leader, and its token is not used again.
func delayedWrite(s *suite) {
	el := s.election("")
	o := s.short()
	a, b := el.join(o), el.join(o)
	release, applied := make(chan struct{}), make(chan struct{})
	a.faults.Next("swap", fault.Late(release, applied))
	_, err := a.TryCampaign(s.context())
	s.is(err, fault.ErrInjected, "TryCampaign whose write is late")
	a.hit()
	sent := time.Now()
	close(release)
	wait(s, applied, "the late write is applied")
	late := el.record(s.open())
	if late.Holder != a.ID() {
		s.Errorf("the late write was not applied: the record is %v", late)
	}
	_, err = a.Token()
	s.is(err, elector.ErrNotLeader, "Token after a late write")
	next := b.campaign(s.context())
	l := next.won("a record that is not renewed expires")
	s.waited(next, sent, o.TTL)
	s.grows(elector.Token(late.Token), l.Token(), "after a late write")
	s.must(b.Resign(s.context()), "resigning")

	// Its own candidate may retake it immediately, with a new token.
	release, applied = make(chan struct{}), make(chan struct{})
	c := el.join(s.long())
	c.faults.Next("swap", fault.Late(release, applied))
	_, err = c.TryCampaign(s.context())
	s.is(err, fault.ErrInjected, "TryCampaign whose write is late")
	close(release)
	wait(s, applied, "the late write is applied")
	late = el.record(s.open())
	l, err = c.TryCampaign(s.context())
	s.must(err, "TryCampaign on the candidate's own late write")
	if late.Holder != c.ID() {
		s.Errorf("the late write was not applied: the record is %v", late)
	}
	s.grows(elector.Token(late.Token), l.Token(), "after the candidate's own late write")
	c.hit()
}

// part/holder: a holder is cut off.
func partHolder(s *suite) { s.partition(fault.Hang) }

// part/one-way: a holder's requests arrive, and the answers do not.
func partOneWay(s *suite) { s.partition(fault.HangApplied) }

// partition cuts a holder off. Its lease ends by H, and a successor leads, not before
// C. When the network works again, the old lease stays over.
func (s *suite) partition(f fault.Fault) {
	s.Helper()
	el := s.election("")
	o := s.short()
	a, b := el.join(o), el.join(o)
	l := a.lead()
	next := b.challenge(a)
	a.faults.Always(f)
	s.is(a.lapses(l, "it is cut off"), elector.ErrLost, "Check of a leader that is cut off")
	s.is(context.Cause(l.Context()), elector.ErrLost, "the cause of the context of a leader that is cut off")
	second := next.won("a leader that is cut off is replaced")
	s.waited(next, a.writes.latest(), o.TTL)
	a.cutOff()
	a.faults.Always(nil)
	third := a.campaign(s.context())
	s.is(l.Check(), elector.ErrLost, "Check of the old lease after the network works again")
	b.Resign(s.context())
	s.grows(second.Token(), third.won("a candidate that was cut off leads again").Token(), "after a partition")
}
