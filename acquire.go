package elector

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// attempt makes one attempt to lead, and notes that the store has answered it: see
// Elector.ends. One with a limit for each request, from the call, makes one write; without a
// limit, 0, it lasts as long as its context.
//
// Its steps are drawn in campaign.go. They take two round trips if nothing
// fails, and one if this candidate is the successor in a vacancy that it has seen, which it
// does not read again, or if Open has just read that no process leads. Read and write may share
// requests with those of other Electors. Writes that fail count in the campaign's backoff.
func (e *Elector) attempt(ctx context.Context, limit time.Duration, backoff *backoff) (l *Lease, f *failure) {
	defer func() {
		if f == nil || f.kind == holding {
			e.answered.Store(true)
		}
	}()
	if f = e.stillHealthy(ctx); f != nil {
		return nil, f
	}
	if !e.pace(ctx) {
		return nil, &failure{cancelled, e.ended(ctx, nil)}
	}
	s := e.view.Snapshot()
	r := s.Record
	if !e.fromOpen(s) && !e.succeeds(s) {
		if r, f = e.load(ctx, e.asks(loading, store.Seek).within(limit)); f != nil {
			return nil, f
		}
	}
	if _, f = e.yields(); f != nil {
		return nil, f
	}
	a, f := e.claim(r)
	if f != nil {
		return nil, f
	}
	return e.acquire(ctx, r, a, limit, backoff)
}

// fromOpen reports whether what Open has read will do for this attempt: if it is the first one,
// and no process led less than a second ago. The acquisition compares with that state.
func (e *Elector) fromOpen(s rule.Snapshot) bool {
	opened := e.opened
	e.opened = 0
	return opened != 0 && e.now()-opened < time.Second && s.Record.Vacant()
}

// claim begins an acquisition that replaces r, if that may be taken over.
func (e *Elector) claim(r backends.Record) (*acquisition, *failure) {
	now, nonce := e.clock.Now(), e.newNonce()
	token, free := e.view.Claim(r, nonce, uint64(e.o.MinToken), now.Mono, now.Wall)
	switch {
	case !free:
		return nil, e.heldBy(r)
	case token == 0:
		return nil, &failure{hopeless, ErrTokenExhausted}
	case !rule.Plausible(now.Wall):
		e.log.Warn("elector: this machine's time of day is before 2020 or after 2200 and is not used for tokens; set its clock")
	}
	return &acquisition{e: e, token: token, nonce: nonce, why: annex.Cancelled, releases: e.newBackoff("release")}, nil
}

// acquire replaces prev, which may be taken over, by a record of our own, and returns the
// lease. If it has none it gives the acquisition up: at once, or as a retraction if the
// campaign was cancelled after a write.
func (e *Elector) acquire(ctx context.Context, prev backends.Record, a *acquisition, limit time.Duration, backoff *backoff) (*Lease, *failure) {
	r, f, pending := e.write(ctx, prev, a, limit, backoff)
	if f == nil {
		f = e.discarded(ctx, r, a)
	} else if ctx.Err() != nil && (pending != nil || a.number > 0) {
		e.retract(ctx, a, prev, pending)
		return nil, f
	}
	if f != nil {
		e.view.Over(a.nonce)
		return nil, f
	}
	backoff.over()
	a.shown(r)
	return e.newLease(ctx, a), nil
}

// write makes the writes of an acquisition, until the store shows one of them. After
// a write whose outcome is unknown it reads back, and writes again only while
// prev still stands: all writes of one acquisition compare with the same state,
// so at most one of them is ever applied, and its number shows which. If ctx ends before a
// write does, write returns that.
func (e *Elector) write(ctx context.Context, prev backends.Record, a *acquisition, limit time.Duration, backoff *backoff) (r backends.Record, f *failure, pending *store.Request) {
	for {
		a.sent = slices.DeleteFunc(a.sent, func(w write) bool { return clock.Elapsed(e.clock, w.start) >= e.o.hold() })
		before := a.number
		r, f, pending = e.swapFor(ctx, a, prev, limit)
		switch {
		case f == nil:
			return r, nil, nil
		case pending == nil && a.number > before:
			e.view.Doubt()
		}
		switch {
		case ctx.Err() != nil:
			return r, f, pending
		case f.kind == untried && a.number == before: // what was seen while it waited speaks against it
			return r, e.heldBy(e.view.Snapshot().Record), nil
		}
		r, readBack := e.load(ctx, e.asks(loading, store.Gain).alone().within(limit))
		switch {
		case ctx.Err() != nil:
			return r, f, nil
		case readBack != nil:
			f = &failure{max(f.kind, readBack.kind), fmt.Errorf("%w; reading back: %w", f.err, readBack.err)}
		case r.Exists() && r.Attempt.Nonce == a.nonce:
			return r, nil, nil
		case r.Version != prev.Version:
			return r, e.heldBy(r), nil
		}
		switch {
		case f.permanent():
			return r, f, nil
		case limit > 0:
			return r, &failure{transient, fmt.Errorf("the outcome is not known: %w", f.err)}, nil
		}
		e.traceWaiting(ctx, f)
		if !backoff.pause(ctx, f) {
			return r, f, nil
		}
	}
}

// swapFor makes the next write of an acquisition, for a campaign that may be cancelled
// meanwhile. If it was sent it then goes on, and retract waits for its outcome.
func (e *Elector) swapFor(ctx context.Context, a *acquisition, prev backends.Record, limit time.Duration) (backends.Record, *failure, *store.Request) {
	how, lasting := e.asks(swapping, store.Gain), context.WithoutCancel(ctx)
	soon, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		soon, cancel = e.clock.WithTimeout(ctx, limit)
	}
	defer cancel()
	r := e.beginSwap(lasting, how, &swap{prev: prev, size: store.Size(prev) + len(e.o.ID) + len(e.o.Value) + len(prev.Extensions),
		may:  func() bool { return ctx.Err() == nil && e.view.MayRetry(prev, a.nonce, a.token, e.now()) },
		next: func() backends.Record { return a.next(prev, e.o.ID, e.o.Value) }})
	select {
	case <-r.Done():
	case <-soon.Done():
		if r.Withdraw() {
			return backends.Record{}, e.failed(ctx, soon, limit, soon.Err(), true), nil
		}
		select {
		case <-r.Done():
		case <-ctx.Done():
			return backends.Record{}, &failure{cancelled, e.ended(ctx, nil)}, r
		}
	}
	record, f, _ := e.endSwap(lasting, how, prev, r)
	return record, f, nil
}

// discarded returns why this process does not lead although the store shows
// its acquisition r, or nil if it leads.
func (e *Elector) discarded(ctx context.Context, r backends.Record, a *acquisition) (f *failure) {
	w, _ := a.sent.of(r.Attempt.Sequence)
	switch err := a.differs(r); {
	case err != nil:
		f = &failure{holding, &HeldError{e.leader(r), err.Error()}}
	case !e.view.Believes(r, e.now()):
		f = e.heldBy(r)
	case clock.Elapsed(e.clock, w.start) >= e.o.hold():
		f = &failure{transient, fmt.Errorf("%w: the store took longer than the lease to answer", ErrUnavailable)}
	default:
		return nil
	}
	traced(e, e.o.Trace.Discarded, ctx, LeaseInfo{Election: e.name, Store: e.store, Token: Token(r.Token), Err: f.err})
	return f
}

// newLease starts to maintain an acquisition that an acknowledged write, or a
// read-back, has shown to be ours. The lease's context has the values of base.
func (e *Elector) newLease(base context.Context, own *acquisition) *Lease {
	l := &Lease{
		e: e, token: Token(own.token), won: own.record, hold: e.o.hold(), inRun: e.running || e.seat,
		ended: make(chan struct{}), idle: make(chan struct{}),
		upkeep: upkeep{proposals: make(chan *proposal, 1), place: e.requests.Swapping(),
			own: own, value: own.record.Value, faults: e.newBackoff("renewal")},
	}
	l.release.done = make(chan struct{})
	// No other write of the acquisition counts any more: another write of a creation
	// may have been on its way while other records came and went.
	won, _ := own.sent.of(own.record.Attempt.Sequence)
	own.sent.only(won)
	start := won.start
	l.ctx, l.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(base), workOf{l}, true))
	l.lasting = context.WithoutCancel(l.ctx)
	l.status.Store(&status{start: start})
	l.next = l.nextRenewal()
	l.turn.do = l.maintain
	l.turn.asked.Store(1) // it begins below
	e.view.Take(l.step("win", start), func() bool { return true })
	l.checked.Store(int64(start.Mono))
	e.current.Store(l)
	l.expireLater()
	if e.log.Info("elector: leads", "token", l.token); e.lossy != "" {
		e.log.Warn("elector: another process may lead at the same time, because the store may lose acknowledged writes", "token", l.token, "lossy", e.lossy)
	}
	e.traceCampaigned(base, nil)
	wait := queued(e, e.o.Trace.Acquired, l.ctx, l.info(nil))
	e.active.Add(1)
	if e.requests.ShowsPresence() {
		l.watchPresence()
	}
	go l.turn.run() // before the callback has returned: it may resign
	wait()
	return l
}

// retract gives up an acquisition whose campaign was cancelled while a write was
// under way. In the background it waits for the outcome, if that is still to come,
// reads back, and tells the store that the election is vacant.
func (e *Elector) retract(ctx context.Context, a *acquisition, prev backends.Record, pending *store.Request) {
	why := e.ended(ctx, nil)
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	e.retraction = done
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		defer close(done)
		if pending != nil {
			if _, f, unsent := e.endSwap(ctx, e.asks(swapping, store.Gain), prev, pending); f != nil && !unsent {
				e.view.Doubt()
			}
		}
		free := e.view.Over(a.nonce)
		r, f := e.load(ctx, e.asks(loading, store.Gain).alone().within(e.o.RequestTimeout))
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
