package elector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
)

// An acquisition is what its writer knows of its own writes. One goroutine at a
// time owns it: that of the campaign, then the lease's, then the one that tells
// the store.
type acquisition struct {
	e      *Elector
	token  uint64
	nonce  string
	record backends.Record // ours, as the store last showed it; none before that
	number uint64          // of the latest write
	sent   map[uint64]write

	// For the vacancy.
	successor string       // ID of the candidate that the leader named
	why       annex.Reason // for the end of the term

	releases *backoff
}

// A write is a write of an acquisition that may still count.
type write struct {
	start    clock.Reading // before it was sent
	vacant   bool
	value    string
	critical backends.Extensions
}

// next returns the record to write in place of prev, and records that it is sent now.
// A renewal passes on all extensions, an acquisition only kept ones, and a release
// those and the successor.
func (a *acquisition) next(prev backends.Record, holder, value string) backends.Record {
	o := &a.e.o
	a.number++
	start := clock.Mark(a.e.clock)
	now := time.Unix(0, int64(start.Wall))
	r := backends.Record{Holder: holder, Token: a.token, TTL: o.TTL, RenewEvery: o.RenewEvery,
		Attempt: backends.Attempt{Nonce: a.nonce, Sequence: a.number}, Value: value}
	switch {
	case prev.Attempt.Nonce != a.nonce:
		r.Extensions = annex.Acquired(prev, holder, a.token, now)
	case holder == "":
		r.Extensions = annex.Released(prev, a.why, a.successor, now)
	default:
		r.Extensions = annex.Renewed(prev)
	}
	a.sent[a.number] = write{start, holder == "", value, r.Extensions.Class('c')}
	return r
}

// differs returns how a state differs from what was written with its attempt, nil
// if it is ours. Other processes may change extensions, except critical ones.
func (a *acquisition) differs(r backends.Record) error {
	w, sent := a.sent[r.Attempt.Sequence]
	o := &a.e.o
	holder := o.ID
	if w.vacant {
		holder = ""
	}
	switch {
	case !r.Exists():
		return errors.New("it is gone; if it was not deleted by hand, look for a rule in the store that expires or deletes data")
	case r.Attempt.Nonce != a.nonce && r.Vacant():
		return fmt.Errorf("it is vacant after token %d", r.Token)
	case r.Attempt.Nonce != a.nonce:
		return fmt.Errorf("%q holds it with token %d", r.Holder, r.Token)
	case !sent:
		return fmt.Errorf("%w: it shows a write of this process that is out of date", ErrTokenRegressed)
	case r.Token != a.token || r.Holder != holder || r.TTL != o.TTL || r.RenewEvery != o.RenewEvery || r.Value != w.value:
		return fmt.Errorf("it was edited by hand: holder %.80q, token %d, TTL %v, renewal interval %v, value %.80q", r.Holder, r.Token, r.TTL, r.RenewEvery, r.Value)
	case r.Extensions.Class('c') != w.critical:
		return fmt.Errorf("another process has changed its critical extensions: %.200s", r.Extensions.Class('c'))
	}
	return nil
}

// maintain renews the lease until it is over, and tells the store if it was
// resigned. Its goroutine is the only one that writes the lease's record. It
// begins once the acquisition was traced, or the lease is over.
func (l *Lease) maintain(acquired <-chan struct{}) {
	e := l.e
	defer e.active.Done()
	defer close(l.idle)
	select {
	case <-acquired:
	case <-l.ended:
	}
	l.renewUntilOver()
	l.batches.leave()
	l.reportEnd()
}

// reportEnd tells people and hooks that the lease is over. It is apart from
// maintain, whose stack lives as long as the lease.
func (l *Lease) reportEnd() {
	e := l.e
	s := l.status.Load()
	info := l.info(s.cause)
	info.Cause = s.ending().String()
	if s.phase == resigned {
		e.log.Info("elector: leads no more", "token", l.token, "cause", info.Cause, "error", s.cause)
	} else {
		e.log.Warn("elector: leads no more", "token", l.token, "cause", info.Cause, "error", s.cause)
	}
	traced(e, e.o.Trace.Ended, l.ctx, info)
	l.tell(leaseEnded)
}

func (l *Lease) renewUntilOver() {
	e := l.e
	next := l.nextRenewal()
	var pending *proposal
	for {
		proposals := l.proposals
		if pending != nil {
			proposals = nil
		}
		due, stop := e.after(next - e.clock.Now().Mono)
		select {
		case <-due:
		case pending = <-proposals:
			l.value = pending.value
		case <-l.ended:
		}
		stop()
		if l.valid() != nil {
			return
		}
		if early := e.tooEarly(); early > 0 {
			next = e.clock.Now().Mono + early
			continue
		}
		if l.stalled() {
			next = e.clock.Now().Mono + l.retryAfter()
			continue
		}
		l.ail()
		if l.valid() != nil {
			return
		}
		f := l.renew()
		if f != nil {
			l.note(f.err)
			if l.valid() == nil {
				l.faults.failed(f.err, "token", l.token, "remaining", l.Remaining())
			}
			next = e.clock.Now().Mono + l.retryAfter()
		} else {
			l.faults.over("token", l.token)
			next = l.nextRenewal()
			if pending != nil {
				pending.done <- nil
				pending = nil
			}
		}
		if f.hopeless() {
			// The store refuses this value, or everything. Go back to the value that
			// it took before, even if no caller waits any more.
			l.value = l.own.record.Value
			if pending != nil {
				pending.done <- f.err
				pending = nil
			}
		}
		if pending != nil && pending.ctx.Err() != nil {
			pending = nil
		}
	}
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

// ail calls Healthy, and resigns if it returns an error. It does not call it after
// the worker was told to stop.
func (l *Lease) ail() {
	if l.status.Load().phase != held {
		return
	}
	f := l.e.healthy(context.WithoutCancel(l.ctx))
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
// answers the next one with a conflict. The lease counts from when the write that
// the store shows was sent.
func (l *Lease) renewOnce() (f *failure, overtaken bool) {
	e, a := l.e, l.own
	ctx := context.WithoutCancel(l.ctx)
	before := a.record
	next := a.next(before, e.o.ID, l.value)
	l.note(errUnanswered)
	r, f := e.swap(ctx, l.limit(), writing, l.sender(), before, next)
	l.shares.outcome(f)
	if f == nil {
		return l.adopt(r), false
	}
	l.note(f.err)
	if f.kind == unmarked {
		l.move(deposed, none, l.lostBecause(f.err))
		return f, false
	}
	r, readBack := e.load(ctx, l.limit(), reading)
	if readBack != nil {
		if readBack.kind == alien {
			l.move(lost, none, l.lostBecause(readBack.err))
		}
		return &failure{max(f.kind, readBack.kind), fmt.Errorf("%w; reading back: %w", f.err, readBack.err)}, false
	}
	if err := a.differs(r); err != nil {
		l.move(lost, none, l.lostBecause(fmt.Errorf("the record was changed: %w", err)))
		return f, false
	}
	if adopted := l.adopt(r); adopted != nil || r.Attempt == next.Attempt {
		return adopted, false
	}
	return f, r.Version != before.Version && r.Attempt == before.Attempt
}

// errUnanswered is the fault of a renewal that is still under way when the lease
// ends.
var errUnanswered = fmt.Errorf("%w: the renewal has not been answered", ErrUnavailable)

// limit caps a request by the rest of the lease as it stands, so that a request
// that hangs is given up before the lease ends.
func (l *Lease) limit() time.Duration {
	return max(min(l.e.o.RequestTimeout, l.Remaining()), 1)
}

// adopt continues from a state of our own that the store has shown. The lease
// counts from when its attempt was sent, even if another process has changed an
// extension since.
func (l *Lease) adopt(r backends.Record) *failure {
	a := l.own
	var err error
	switch w := a.sent[r.Attempt.Sequence]; {
	case r.Version == a.record.Version:
		err = l.valid() // nothing was applied so far, and any write still can be
	case r.Attempt == a.record.Attempt:
		a.record = r // all writes under way compare with the state that is gone
		err = l.valid()
	default:
		// No other write of ours can be applied any more: all of them compared
		// with the state that this one has replaced.
		a.record = r
		clear(a.sent)
		a.sent[r.Attempt.Sequence] = w
		margin := l.Remaining()
		if err = l.extend(w.start); err == nil {
			info := l.info(nil)
			info.Margin = margin
			traced(l.e, l.e.o.Trace.Renewed, l.ctx, info)
		}
	}
	if err != nil {
		return &failure{passing, err}
	}
	l.heed()
	return nil
}
