package elector

import (
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/store"
)

// maintain renews the lease when that is due, and once it is over tells the store if it was
// resigned. It is called in one goroutine at a time, which alone writes as the holder: after
// each renewal, when the next one is due, when there is a proposal, and at the end.
func (l *Lease) maintain() {
	if l.finished {
		return
	}
	for l.valid() == nil && l.due() {
		l.renewNow()
	}
	if l.valid() == nil {
		l.later(renewing, l.next-l.e.clock.Now().Mono, l.turn.ask)
		return
	}
	l.finished = true
	defer l.e.active.Done()
	defer close(l.idle)
	l.place.Leave()
	l.faults.close()
	if l.unwatch != nil {
		l.unwatch()
	}
	l.reportEnd()
}

// reportEnd tells people and hooks that the lease is over.
func (l *Lease) reportEnd() {
	e := l.e
	s := l.status.Load()
	info := l.info(s.cause)
	info.Cause = s.ending().String()
	if s.phase == resigned {
		e.log.Info("elector: leads no more", "token", l.token, "cause", info.Cause, "error", s.cause)
	} else {
		l.logLoss(info.Cause, s.cause)
	}
	traced(e, e.o.Trace.Ended, l.ctx, info)
	l.writeRelease(leaseEnded)
}

// due reports whether to renew now: at the time for it, or for a proposal. One at a time is
// tried until it is decided.
func (l *Lease) due() bool {
	for {
		passed := l.next <= l.e.clock.Now().Mono
		if l.pending != nil {
			return passed
		}
		select {
		case p := <-l.proposals:
			if l.accept(p) || passed {
				return true
			}
		default:
			return passed
		}
	}
}

// accept reports whether a proposal is to be written. One whose value a renewal has published,
// as a caller who no longer waits proposed it, is not, unless another write may still count.
func (l *Lease) accept(p *proposal) bool {
	switch {
	case p.ctx.Err() != nil:
		return false
	case p.value == l.value && p.value == l.own.record.Value && len(l.own.sent) == 1:
		p.done <- nil
		return false
	}
	l.pending, l.value = p, p.value
	return true
}

// renewNow renews the lease, or puts that off, and sets the time of the next renewal.
func (l *Lease) renewNow() {
	e := l.e
	if early := e.tooEarly(); early > 0 {
		l.next = e.clock.Now().Mono + early
		return
	}
	if l.stalled() {
		l.next = e.clock.Now().Mono + l.retryAfter()
		return
	}
	if l.checkHealth(); l.valid() != nil {
		return
	}
	f := l.renew()
	if f != nil {
		l.fault.Store(&f.err)
		if l.valid() == nil {
			l.faults.failed(f, "token", l.token, "remaining", l.Remaining())
		}
		l.next = e.clock.Now().Mono + l.retryAfter()
	} else {
		l.fault.Store(nil)
		l.faults.over("token", l.token)
		l.next = l.nextRenewal()
		l.decide(nil)
	}
	if f.permanent() {
		// The store refuses this value, or everything. Go back to the value that
		// it took before, even if no caller waits any more.
		l.value = l.own.record.Value
		l.decide(f.err)
	}
	if l.pending != nil && l.pending.ctx.Err() != nil {
		l.pending = nil
	}
}

// decide ends the proposal that is tried, if there is one.
func (l *Lease) decide(err error) {
	if l.pending != nil {
		l.pending.done <- err
		l.pending = nil
	}
}

// nextRenewal is when to renew after a renewal that worked: one interval after it
// was sent, or up to a quarter of an interval earlier to share a request.
func (l *Lease) nextRenewal() time.Duration {
	every := l.e.o.RenewEvery
	return l.place.Before(l.status.Load().start.Mono+every, every)
}

// retryAfter is the pause after a failed renewal: at most a quarter of the
// interval, so that a fault that passes one interval before the end of the lease
// leaves time for several tries.
func (l *Lease) retryAfter() time.Duration {
	return max(l.e.halfRandom(min(l.e.o.RenewEvery/4, longestPause)), l.e.o.writeInterval)
}

// stalled reports whether the worker has not called Check for StallTimeout.
func (l *Lease) stalled() bool {
	most := l.e.o.StallTimeout
	return most > 0 && l.e.clock.Now().Mono-time.Duration(l.checked.Load()) > most
}

// checkHealth calls Healthy, and resigns if it returns an error. It does not call it after
// the worker was told to stop.
func (l *Lease) checkHealth() {
	if l.status.Load().phase != held {
		return
	}
	f := l.e.checkHealth(l.lasting)
	switch {
	case f == nil:
	case l.inRun:
		l.drain(unhealthy, f.err)
	default:
		l.move(resigned, unhealthy, l.resignedBecause(f.err))
	}
}

// renew writes the record anew. If another process has changed an extension
// meanwhile, it tries once more.
func (l *Lease) renew() *failure {
	f, overtaken := l.renewOnce()
	if overtaken && l.e.tooEarly() <= 0 && !l.stalled() && l.valid() == nil {
		f, _ = l.renewOnce()
	}
	return f
}

// renewOnce writes the record anew. After every error, a conflict included, it
// reads back: the store may have applied this write or an earlier one, and then
// answers the next one with a conflict. A process that holds many leases reads back only
// after such a conflict: all its writes compare with the same state. The lease counts from
// when the write that the store shows was sent.
func (l *Lease) renewOnce() (f *failure, overtaken bool) {
	e, a, ctx := l.e, l.own, l.lasting
	l.fault.Store(&errUnsent)
	how := l.asks(swapping).gathers(true)
	write := &swap{prev: a.record, size: store.Size(a.record) + len(e.o.ID) + len(l.value) + len(a.record.Extensions), may: l.mayRenew, next: l.renewed}
	pending := e.beginSwap(ctx, how, write)
	select {
	case <-pending.Done():
	case <-l.ended:
		if pending.Withdraw() {
			return &failure{transient, errUnsent}, false
		}
		how = how.within(max(how.Over-e.now(), 1))
	}
	r, f, unsent := e.endSwap(ctx, how, write.prev, pending)
	if f == nil {
		return l.adopt(r), false
	}
	many := l.place.Many()
	if unsent || many && f.kind != conflicting && f.kind != presenceLost { // the next renewal tells what became of this one
		return f, false
	}
	if f.kind == presenceLost {
		l.move(deposed, none, l.lostBecause(f.err))
		return f, false
	}
	read := l.asks(loading)
	read.Alone = !many
	r, readBack := e.load(ctx, read)
	if readBack != nil {
		if readBack.kind == foreign {
			l.move(lost, none, l.lostBecause(readBack.err))
		}
		return &failure{max(f.kind, readBack.kind), fmt.Errorf("%w; reading back: %w", f.err, readBack.err)}, false
	}
	if err := a.differs(r); err != nil {
		l.move(lost, none, l.lostBecause(fmt.Errorf("the record was changed: %w", err)))
		return f, false
	}
	if adopted := l.adopt(r); adopted != nil || r.Attempt == write.change.Next.Attempt {
		return adopted, false
	}
	return f, r.Version != write.prev.Version && r.Attempt == write.prev.Attempt
}

// mayRenew reports whether a renewal may still be sent.
func (l *Lease) mayRenew() bool { return l.valid() == nil && !l.stalled() }

// renewed returns what the renewal that is about to be sent writes.
func (l *Lease) renewed() backends.Record {
	l.fault.Store(&errUnanswered)
	return l.own.next(l.own.record, l.e.o.ID, l.value)
}

// The faults of a renewal that has not been answered when the lease ends.
var (
	errUnanswered = fmt.Errorf("%w: the renewal has not been answered", ErrUnavailable)
	errUnsent     = fmt.Errorf("%w: the renewal was not sent, because other requests of this process are under way or go before it; it has too many elections for its processor or for the store", ErrUnavailable)
)

// asks returns an ask for a request that the lease needs. One that is not answered is given up
// before the lease ends. While there is more left than usual when a renewal is due,
// acquisitions go before it.
func (l *Lease) asks(why string) ask {
	a := l.e.asks(why, store.Keep).within(max(l.Remaining(), 1))
	a.Over = l.status.Load().start.Mono + l.hold
	a.Urgent = a.Over - l.hold*6/10
	return a
}

// adopt continues from a state of our own that the store has shown. The lease
// counts from when its attempt was sent, even if another process has changed an
// extension since.
func (l *Lease) adopt(r backends.Record) *failure {
	a := l.own
	var err error
	switch w, _ := a.sent.of(r.Attempt.Sequence); {
	case r.Version == a.record.Version:
		err = l.valid() // nothing was applied so far, and any write still can be
	case r.Attempt == a.record.Attempt:
		a.record = r // all writes under way compare with the state that is gone
		err = l.valid()
	default:
		// None of our other writes can be applied any more: all of them compared
		// with the state that this one has replaced.
		a.record = r
		a.sent.only(w)
		margin := l.Remaining()
		if err = l.extend(w.start); err == nil {
			info := l.info(nil)
			info.Margin = margin
			traced(l.e, l.e.o.Trace.Renewed, l.ctx, info)
		}
	}
	if err != nil {
		return &failure{transient, err}
	}
	l.obeyRequest()
	return nil
}

// obeyRequest tells the worker to stop if the record, as it was read last, has a request
// for this lease.
func (l *Lease) obeyRequest() {
	q := l.e.annex.Of(l.own.record).Request
	if q.Token == 0 || l.status.Load().why >= requested {
		return
	}
	l.e.log.Info("elector: requested to resign", "token", l.token, "by", q.By, "to", q.To)
	l.drain(requested, fmt.Errorf("%w: %q", ErrRequested, q.By))
}
