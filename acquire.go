package elector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// An acquisition is what its writer knows of its own writes. One goroutine at a
// time owns it: that of the campaign, then the lease's, then the one that tells
// the store.
type acquisition struct {
	e      *Elector
	token  uint64 // of the latest write, and of the one that the store shows once it does
	nonce  string
	record backends.Record // ours, as the store last showed it; none before that
	number uint64          // of the latest write
	sent   map[uint64]write

	// For the vacancy.
	successor string       // ID of the candidate that the leader named
	why       annex.Reason // for the end of the term
	pause     *annex.Pause // of the election; nil if it goes on

	releases *backoff
}

// A write is a write of an acquisition that may still count.
type write struct {
	start    clock.Reading // before it was sent
	token    uint64
	vacant   bool
	value    string
	critical backends.Extensions
}

// next returns the record to write in place of prev, and records that it is sent now.
// A renewal passes on all extensions, an acquisition only kept ones, and a release
// those and the successor.
func (a *acquisition) next(prev backends.Record, holder, value string) backends.Record {
	o := &a.e.o
	if a.number++; a.number > 1 {
		a.number += a.e.o.random() % strides
	}
	start := clock.Mark(a.e.clock)
	now := time.Unix(0, int64(start.Wall))
	if a.number > 1 && !prev.Exists() { // others may have led and their records gone, since the write before
		a.token = rule.Token(a.token-1, 0, start.Wall)
	}
	r := backends.Record{Holder: holder, Token: a.token, TTL: o.TTL, RenewEvery: o.RenewEvery,
		Attempt: backends.Attempt{Nonce: a.nonce, Sequence: a.number}, Value: value}
	switch {
	case prev.Attempt.Nonce != a.nonce:
		r.Extensions = annex.Acquired(prev, holder, a.token, now)
		if o.seat {
			r.Extensions = rule.Replaced(r.Extensions, prev)
		}
	case holder == "":
		r.Extensions = annex.Released(prev, a.why, a.successor, a.pause, now)
	default:
		r.Extensions = annex.Renewed(prev)
	}
	a.sent[a.number] = write{start, a.token, holder == "", value, r.Extensions.Class('c')}
	return r
}

// strides is by how much the numbers of two writes may differ. They do not follow each
// other, so that a number that another process has written by hand is not taken for that
// of a write under way.
const strides = 1 << 16

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
	case r.Token != w.token || r.Holder != holder || r.TTL != o.TTL || r.RenewEvery != o.RenewEvery || r.Value != w.value:
		return fmt.Errorf("it was edited by hand: holder %.80q, token %d, TTL %v, renewal interval %v, value %.80q", r.Holder, r.Token, r.TTL, r.RenewEvery, r.Value)
	case r.Extensions.Class('c') != w.critical:
		return fmt.Errorf("another process has changed its critical extensions: %.200s", r.Extensions.Class('c'))
	}
	return nil
}

// shown takes the state of a record that does not differ.
func (a *acquisition) shown(r backends.Record) { a.record, a.token = r, r.Token }

// attempt makes one attempt to lead, with at most so many writes, and notes that the store
// has answered it: see Elector.ends.
func (e *Elector) attempt(ctx context.Context, writes int, backoff *backoff) (*Lease, *failure) {
	l, f := e.steps(ctx, writes, backoff)
	if f == nil || f.kind == holding {
		e.answered.Store(true)
	}
	return l, f
}

// steps are those of an attempt, drawn in campaign.go. They take two round trips if nothing
// fails, and one if this candidate is the successor in a vacancy that it has seen, which it
// does not read again. Read and write may share requests with those of other Electors. Writes
// that fail count in the campaign's backoff.
func (e *Elector) steps(ctx context.Context, writes int, backoff *backoff) (*Lease, *failure) {
	if f := e.stillHealthy(ctx); f != nil {
		return nil, f
	}
	if !e.pace(ctx) {
		return nil, &failure{cancelled, e.ended(ctx, nil)}
	}
	s := e.view.Snapshot()
	r := s.Record
	if !e.succeeds(s) {
		var f *failure
		if r, f = e.loadTogether(ctx, e.o.RequestTimeout, loading); f != nil {
			return nil, f
		}
	}
	if _, f := e.yields(); f != nil {
		return nil, f
	}
	a, f := e.claim(r)
	if f != nil {
		return nil, f
	}
	return e.acquire(ctx, r, a, writes, backoff)
}

// claim begins an acquisition that replaces r, if that may be taken over.
func (e *Elector) claim(r backends.Record) (*acquisition, *failure) {
	now, nonce := e.clock.Now(), e.o.newNonce()
	token, free := e.view.Claim(r, nonce, uint64(e.o.MinToken), now.Mono, now.Wall)
	switch {
	case !free:
		return nil, e.heldBy(r)
	case token == 0:
		return nil, &failure{hopeless, ErrTokenExhausted}
	case !rule.Plausible(now.Wall):
		e.log.Warn("elector: this machine's time of day is before 2020 or after 2200 and is not used for tokens; set its clock")
	}
	return &acquisition{e: e, token: token, nonce: nonce, why: annex.Cancelled, sent: map[uint64]write{}, releases: e.newBackoff("release")}, nil
}

// unlimited is a number of writes that no acquisition reaches.
const unlimited = 1 << 30

// acquire replaces prev, which may be taken over, by a record of our own. After
// a write whose outcome is unknown it reads back, and writes again only while
// prev still stands: all writes of one acquisition compare with the same state,
// so at most one of them is ever applied, and its number shows which.
func (e *Elector) acquire(ctx context.Context, prev backends.Record, a *acquisition, writes int, backoff *backoff) (*Lease, *failure) {
	won := func(r backends.Record) (*Lease, *failure) {
		if f := e.discarded(ctx, r, a); f != nil {
			return nil, e.abandon(a, f)
		}
		backoff.over()
		a.shown(r)
		return e.newLease(ctx, a), nil
	}
	for writes--; ; writes-- {
		maps.DeleteFunc(a.sent, func(_ uint64, w write) bool { return clock.Elapsed(e.clock, w.start) >= e.o.hold() })
		next := a.next(prev, e.o.ID, e.o.Value)
		r, f, pending := e.swapFor(ctx, prev, next)
		if f == nil {
			return won(r)
		}
		if pending == nil {
			e.view.Doubt()
		}
		if ctx.Err() != nil {
			e.retract(ctx, a, pending)
			return nil, f
		}
		r, readBack := e.load(ctx, e.o.RequestTimeout, loading)
		switch {
		case ctx.Err() != nil:
			e.retract(ctx, a, nil)
			return nil, f
		case readBack != nil:
			f = &failure{max(f.kind, readBack.kind), fmt.Errorf("%w; reading back: %w", f.err, readBack.err)}
		case r.Exists() && r.Attempt.Nonce == a.nonce:
			return won(r)
		case r.Version != prev.Version:
			return nil, e.abandon(a, e.heldBy(r))
		}
		if f.permanent() {
			return nil, e.abandon(a, f)
		}
		if writes <= 0 {
			return nil, e.abandon(a, &failure{transient, fmt.Errorf("the outcome is not known: %w", f.err)})
		}
		e.traceWaiting(ctx, f)
		if !backoff.pause(ctx, f) {
			e.retract(ctx, a, nil)
			return nil, f
		}
		if !e.view.MayRetry(prev, next, e.now()) {
			return nil, e.abandon(a, e.heldBy(e.view.Snapshot().Record))
		}
	}
}

// swapFor makes a swap for a campaign that may be cancelled meanwhile. The
// request then goes on, and retract waits for its outcome.
func (e *Elector) swapFor(ctx context.Context, prev, next backends.Record) (backends.Record, *failure, <-chan *failure) {
	outcome := make(chan *failure, 1)
	var r backends.Record
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		swapped, f := e.swap(context.WithoutCancel(ctx), e.o.RequestTimeout, swapping, false, prev, next)
		r = swapped
		outcome <- f
	}()
	select {
	case f := <-outcome:
		return r, f, nil
	case <-ctx.Done():
		return backends.Record{}, &failure{cancelled, e.ended(ctx, nil)}, outcome
	}
}

// discarded returns why this process does not lead although the store shows
// its acquisition r, or nil if it leads.
func (e *Elector) discarded(ctx context.Context, r backends.Record, a *acquisition) (f *failure) {
	start := a.sent[r.Attempt.Sequence].start
	switch err := a.differs(r); {
	case err != nil:
		f = &failure{holding, &HeldError{e.leader(r), err.Error()}}
	case !e.view.Believes(r, e.now()):
		f = e.heldBy(r)
	case clock.Elapsed(e.clock, start) >= e.o.hold():
		f = &failure{transient, fmt.Errorf("%w: the store took longer than the lease to answer", ErrUnavailable)}
	default:
		return nil
	}
	traced(e, e.o.Trace.Discarded, ctx, LeaseInfo{Election: e.name, Store: e.store, Token: Token(r.Token), Err: f.err})
	return f
}

// abandon gives up an acquisition.
func (e *Elector) abandon(a *acquisition, f *failure) *failure {
	e.view.Over(a.nonce)
	return f
}

// retract gives up an acquisition whose campaign was cancelled while a write was
// under way. In the background it waits for the outcome, if that is still to come,
// reads back, and tells the store that the election is vacant.
func (e *Elector) retract(ctx context.Context, a *acquisition, pending <-chan *failure) {
	why := e.ended(ctx, nil)
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	e.retraction = done
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		defer close(done)
		if pending != nil && <-pending != nil {
			e.view.Doubt()
		}
		free := e.view.Over(a.nonce)
		r, f := e.load(ctx, e.o.RequestTimeout, loading)
		ours := f == nil && a.differs(r) == nil
		if ours {
			a.shown(r)
			traced(e, e.o.Trace.Discarded, ctx, LeaseInfo{Election: e.name, Store: e.store, Token: Token(a.token), Err: why})
		}
		if !free || f == nil && !ours {
			return
		}
		start := e.clock.Now().Mono
		err := a.vacate()
		traced(e, e.o.Trace.Released, ctx, LeaseInfo{Election: e.name, Store: e.store, Token: Token(a.token), Duration: e.clock.Now().Mono - start, Err: err})
		if err != nil {
			e.log.Warn("elector: the write of a campaign that was cancelled may stand unused until it expires", "token", a.token, "error", err)
		}
	}()
}

var errLate = errors.New("the lease was over before the store could take it")

// vacate replaces the record by a vacancy, as the last renewal: as long as the store shows
// that the record is ours, and only before the lease that this state began is over. From
// then on it reads what has come of a release that may still be applied. It first reads a
// record that it does not know.
func (a *acquisition) vacate() error {
	e := a.e
	ctx, cancel := e.clock.WithTimeout(context.Background(), e.o.ReleaseTimeout)
	defer cancel()
	defer a.releases.rest()
	var unknown *failure // of a release that may still be applied
	overtaken := false
	for {
		f := unknown
		switch timely := a.timely(); {
		case !a.record.Exists():
		case timely():
			if !e.pace(ctx) {
				return e.ended(ctx, f)
			}
			if _, f = e.swapWhile(ctx, e.o.RequestTimeout, swapping, false, timely, a.record, a.next(a.record, "", "")); f == nil {
				a.releases.over("token", a.token)
				return nil
			}
			if f.kind.unknown() {
				unknown = f
			}
		case unknown == nil:
			return errLate
		}
		r, readBack := e.load(ctx, e.o.RequestTimeout, loading)
		moved := false
		if readBack == nil {
			switch err := a.differs(r); {
			case r.Vacant(), r.Attempt.Nonce != a.nonce: // applied, or not ours any more
				a.releases.over("token", a.token)
				return nil
			case err != nil:
				return fmt.Errorf("the record still names this process, but %w", err)
			}
			moved = r.Version != a.record.Version
			a.record = r
		}
		switch {
		case f.endsRelease():
			return f.err
		case readBack.endsRelease():
			return readBack.err
		case moved && !overtaken: // another process has changed an extension
			overtaken = true
			continue
		case f == nil:
			f = readBack
		}
		if !a.releases.pause(ctx, f) {
			return f.err
		}
	}
}

// timely returns a function that reports whether a release of the record as it was shown
// last may still be sent. Many goroutines may call it.
func (a *acquisition) timely() func() bool {
	clk, start, hold := a.e.clock, a.sent[a.record.Attempt.Sequence].start, a.e.o.hold()
	return func() bool { return clock.Elapsed(clk, start) < hold }
}
