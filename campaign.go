package elector

import (
	"context"
	"fmt"
	"maps"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
)

// Campaign blocks until this process leads, and returns the lease. It waits
// while another candidate leads, and retries after failures that may pass, such
// as a store that does not answer. It returns failures that will not pass at
// once: ErrDenied, ErrMisconfigured, ErrForeignRecord, ErrTokenExhausted. When
// ctx ends Campaign returns the cause and the reason of the wait. If a write was
// under way then, it is read back and released in the background, for at most
// ReleaseTimeout; Close waits for that. The lease does not end with ctx: it is renewed
// until Resign or Close.
//
// After a crash of the leader Campaign waits until this Elector has watched the record
// unchanged for TTL*(1+ClockDrift). What Observe, Leader or a former campaign on this
// Elector has seen counts: a process that observes already takes over sooner.
//
// Call Campaign again only after the work under the last lease has stopped. If
// that lease was lost, Campaign first tells the store that the record is vacant,
// if the record is still this process's; after a deposition (see ErrDeposed) it
// waits for TTL*(1+ClockDrift), so that another candidate can lead. Campaign
// returns ErrBusy while this Elector campaigns or has a valid lease. After a request
// to resign (see RequestResign) a lease stays valid although its context has ended:
// call its Resign first.
func (e *Elector) Campaign(ctx context.Context) (*Lease, error) {
	return e.exclusive(ctx, e.campaign)
}

// TryCampaign makes one attempt. It returns a lease; or ErrHeld, as a *HeldError
// that shows who leads; or why the attempt failed. It blocks for at most a few
// times RequestTimeout, or until ctx ends. If this Elector's last lease is still
// to be released, TryCampaign first waits for that, for at most ReleaseTimeout. If
// the last leader named a successor, and this Elector has seen that leader,
// TryCampaign first waits for the successor's head start: see Options.Priority.
//
// The lease does not end with ctx: it is renewed until Resign or Close. A process that
// is told to stop must call one of them.
//
// Only a candidate that has watched the record of a crashed leader for
// TTL*(1+ClockDrift) replaces that leader. A process that calls TryCampaign once
// and exits, as a cron job does, never watches that long: call Campaign with a
// longer timeout instead.
func (e *Elector) TryCampaign(ctx context.Context) (*Lease, error) {
	return e.exclusive(ctx, func(ctx context.Context) (*Lease, error) {
		loads := loadsOf(e.backend)
		defer loads.leave()
		l, f := e.attempt(ctx, loads, 1)
		if f != nil && f.kind == holding {
			if wait, _ := e.view.yields(e.view.look().record, e.headStart); wait > 0 && e.sleep(ctx, wait) {
				l, f = e.attempt(ctx, loads, 1)
			}
		}
		if f != nil && ctx.Err() != nil {
			return nil, e.ended(ctx, f)
		}
		return l, f.shown()
	})
}

// exclusive runs one campaign at a time, and none while there is a lease.
func (e *Elector) exclusive(ctx context.Context, campaign func(context.Context) (*Lease, error)) (*Lease, error) {
	if err := e.enter(ctx, false); err != nil {
		return nil, e.fail("campaign", err)
	}
	defer e.active.Done()
	ctx, cancel := e.joined(ctx)
	defer cancel()
	l, err := e.afterLast(ctx, campaign)
	if closed := e.leave(); closed && err == nil {
		l.giveUp() // by a Close that saw us campaign, and waits for the release
		l, err = nil, ErrClosed
	}
	return l, e.fail("campaign", err)
}

// enter takes the right to campaign, for Run or for a single lease, and registers
// the call.
func (e *Elector) enter(ctx context.Context, running bool) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if l := e.current.Load(); e.busy || l != nil && l.valid() == nil {
		e.active.Done()
		return ErrBusy
	}
	e.busy, e.running = true, running
	return nil
}

// leave gives the right back, and reports whether Close was called: in one step,
// so that either Close sees the lease or the caller sees Close.
func (e *Elector) leave() (closed bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.busy = false
	return e.closed
}

// afterLast campaigns once the last lease, and the last cancelled campaign, are
// done with the record.
func (e *Elector) afterLast(ctx context.Context, campaign func(context.Context) (*Lease, error)) (*Lease, error) {
	if err := e.begins(ctx); err != nil {
		return nil, err
	}
	l, err := campaign(ctx)
	if err != nil {
		e.traceCampaigned(ctx, err)
	}
	return l, err
}

// begins waits for the last lease, and for the last cancelled campaign, and traces
// the beginning of a campaign.
func (e *Elector) begins(ctx context.Context) error {
	if e.retraction != nil {
		select {
		case <-e.retraction:
			e.retraction = nil
		case <-ctx.Done():
		}
	}
	if l := e.current.Load(); l != nil {
		l.workReturned(ctx)
	}
	if ctx.Err() != nil {
		return e.ended(ctx, nil)
	}
	e.began = e.clock.Now().Mono
	traced(e, e.o.Trace.Campaigning, ctx, CampaignInfo{Election: e.name, Store: e.store})
	return nil
}

// attempt reads the record and, if it may be taken over, makes an acquisition of
// at most so many writes. It takes two round trips if nothing fails, and one if
// this candidate is the successor in a vacancy that it has seen. The read may go with those
// of loads.
func (e *Elector) attempt(ctx context.Context, loads *loads, writes int) (*Lease, *failure) {
	if f := e.healthy(ctx); f != nil {
		return nil, f
	}
	if !e.pace(ctx) {
		return nil, &failure{cancelled, e.ended(ctx, nil)}
	}
	r, inherits := e.view.inheritance()
	if !inherits {
		var f *failure
		if r, f = e.loadTogether(ctx, reading, loads, &e.shares, false); f != nil {
			return nil, f
		}
	}
	if _, f := e.view.yields(r, e.headStart); f != nil {
		return nil, f
	}
	nonce := e.o.newNonce()
	token, sane, free, err := e.view.try(r, nonce)
	if !free {
		return nil, e.view.heldBy(r)
	}
	if !sane {
		e.log.Warn("elector: this machine's time of day is before 2020 or after 2200 and is not used for tokens; set its clock")
	}
	if err != nil {
		return nil, &failure{refused, err}
	}
	a := &acquisition{e: e, token: token, nonce: nonce, why: annex.Cancelled, sent: map[uint64]write{}, releases: e.newBackoff("release")}
	return e.acquire(ctx, r, a, writes)
}

// unlimited is a number of writes that no acquisition reaches.
const unlimited = 1 << 30

// acquire replaces prev, which may be taken over, by a record of our own. After
// a write whose outcome is unknown it reads back, and writes again only while
// prev still stands: all writes of one acquisition compare with the same state,
// so at most one of them is ever applied, and its number shows which.
func (e *Elector) acquire(ctx context.Context, prev backends.Record, a *acquisition, writes int) (*Lease, *failure) {
	backoff := e.newBackoff("campaign")
	won := func(r backends.Record) (*Lease, *failure) {
		if f := e.disbelieved(ctx, r, a); f != nil {
			return nil, e.lost(a, f)
		}
		backoff.over()
		a.record = r
		return e.newLease(ctx, a), nil
	}
	for {
		maps.DeleteFunc(a.sent, func(_ uint64, w write) bool { return clock.Elapsed(e.clock, w.start) >= e.o.hold() })
		next := a.next(prev, e.o.ID, e.o.Value)
		r, f, pending := e.swapFor(ctx, prev, next)
		if f == nil {
			return won(r)
		}
		if pending == nil {
			e.view.doubt()
		}
		if ctx.Err() != nil {
			e.retract(ctx, a, pending)
			return nil, f
		}
		r, readBack := e.load(ctx, e.o.RequestTimeout, reading)
		switch {
		case ctx.Err() != nil:
			e.retract(ctx, a, nil)
			return nil, f
		case readBack != nil:
			f = &failure{max(f.kind, readBack.kind), fmt.Errorf("%w; reading back: %w", f.err, readBack.err)}
		case r.Exists() && r.Attempt.Nonce == a.nonce:
			return won(r)
		case r.Version != prev.Version:
			return nil, e.lost(a, e.view.heldBy(r))
		}
		if f.hopeless() {
			return nil, e.lost(a, f)
		}
		if int(next.Attempt.Sequence) >= writes {
			return nil, e.lost(a, &failure{passing, fmt.Errorf("the outcome is not known: %w", f.err)})
		}
		e.traceWaiting(ctx, f)
		if !backoff.pause(ctx, f.err) {
			e.retract(ctx, a, nil)
			return nil, f
		}
		if !e.view.mayRetry(prev, next) {
			return nil, e.lost(a, e.view.heldBy(e.view.look().record))
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
		swapped, f := e.swap(context.WithoutCancel(ctx), e.o.RequestTimeout, writing, e.backend.Swap, prev, next)
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

// disbelieved returns why this process does not lead although the store shows
// its acquisition r, or nil if it leads.
func (e *Elector) disbelieved(ctx context.Context, r backends.Record, a *acquisition) (f *failure) {
	switch err := a.differs(r); {
	case err != nil:
		f = &failure{holding, &HeldError{e.view.leader(r), err.Error()}}
	case !e.view.believes(r):
		f = e.view.heldBy(r)
	case clock.Elapsed(e.clock, a.sent[r.Attempt.Sequence].start) >= e.o.hold():
		f = &failure{passing, fmt.Errorf("%w: the store took longer than the lease to answer", ErrUnavailable)}
	default:
		return nil
	}
	traced(e, e.o.Trace.Disbelieved, ctx, LeaseInfo{Election: e.name, Store: e.store, Token: Token(r.Token), Err: f.err})
	return f
}

// lost gives up an acquisition.
func (e *Elector) lost(a *acquisition, f *failure) *failure {
	e.view.abandon(a.nonce)
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
			e.view.doubt()
		}
		free := e.view.abandon(a.nonce)
		r, f := e.load(ctx, e.o.RequestTimeout, reading)
		ours := f == nil && a.differs(r) == nil
		if ours {
			a.record = r
			traced(e, e.o.Trace.Disbelieved, ctx, LeaseInfo{Election: e.name, Store: e.store, Token: Token(a.token), Err: why})
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

// healthy calls Options.Healthy. A call that hangs or panics is a failure.
func (e *Elector) healthy(ctx context.Context) *failure {
	if e.o.Healthy == nil {
		return nil
	}
	_, f := request(ctx, e, e.o.RequestTimeout, examining, func(ctx context.Context) (_ struct{}, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the check panicked: %v", p)
			}
		}()
		if err := e.o.Healthy(ctx); err != nil {
			return struct{}{}, usersError{err}
		}
		return struct{}{}, nil
	})
	if f != nil && f.kind != cancelled {
		return &failure{sick, fmt.Errorf("%w: %w", ErrUnhealthy, f.err)}
	}
	return f
}
