package elector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// Campaign blocks until this process leads, and returns the lease. It waits
// for as long as somebody else leads and retries what may pass, such as a
// store that does not answer; it returns at once for what will not: ErrDenied,
// ErrMisconfigured, ErrForeignRecord, ErrTokenExhausted. When ctx ends it
// returns its cause; a request that was under way may then still make a record
// that nobody uses and that expires. The lease does not end with ctx.
//
// Calling Campaign again after a lease ended says that the work done under it
// has stopped. If that was deposed (see ErrDeposed), the store is told now, and
// this candidate stands back for TTL*(1+ClockDrift), so that another one gets
// the office. Campaign returns ErrBusy while this Elector leads or campaigns.
func (e *Elector) Campaign(ctx context.Context) (*Lease, error) {
	return e.exclusive(ctx, "campaign", e.campaign)
}

// TryCampaign makes one attempt: it returns a lease, or ErrHeld as a
// *HeldError that says who leads, or why it could not be made. It blocks for
// at most a few times RequestTimeout, and before that until the store has been
// told of this Elector's last lease, at most ReleaseTimeout.
func (e *Elector) TryCampaign(ctx context.Context) (*Lease, error) {
	return e.exclusive(ctx, "campaign", func(ctx context.Context) (*Lease, error) {
		return e.attempt(ctx, 1)
	})
}

// exclusive runs one campaign at a time, and none while there is a lease.
func (e *Elector) exclusive(ctx context.Context, op string, campaign func(context.Context) (*Lease, error)) (*Lease, error) {
	if err := e.enter(false); err != nil {
		return nil, e.fail(op, err)
	}
	defer e.active.Done()
	ctx, cancel := e.joined(ctx)
	defer cancel()
	l, err := e.afterLast(ctx, campaign)
	if closed := e.leave(); closed && err == nil {
		l.giveUp() // by a Close that saw us campaign, and waits for the release
		l, err = nil, ErrClosed
	}
	return l, e.fail(op, err)
}

// enter takes the right to campaign, for Run or for a single lease, and counts
// the call in.
func (e *Elector) enter(running bool) error {
	if err := e.begin(); err != nil {
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

// leave gives the right back, and reports whether Close was called: in one
// step, so that either Close sees the lease or we see Close.
func (e *Elector) leave() (closed bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.busy = false
	return e.closed
}

// afterLast campaigns once the goroutine of the last lease is done with the
// record.
func (e *Elector) afterLast(ctx context.Context, campaign func(context.Context) (*Lease, error)) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l := e.current.Load(); l != nil {
		select {
		case <-l.kept:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		l.stepDown()
		e.mutex.Lock()
		e.sighting.abandon(l.nonce)
		e.mutex.Unlock()
	}
	return campaign(ctx)
}

// campaign tries, waits until the record looks as if another try could
// succeed, and tries again.
func (e *Elector) campaign(ctx context.Context) (*Lease, error) {
	var f *follower
	trouble := e.newTrouble("campaign")
	for {
		l, err := e.attempt(ctx, unlimited)
		switch {
		case err == nil:
			trouble.over()
			return l, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case permanent(err):
			return nil, err
		case errors.Is(err, ErrHeld):
			trouble.over()
			if f == nil {
				f = e.follow(ctx)
				defer f.stop()
			}
			if err := e.awaitChance(ctx, f); err != nil {
				return nil, err
			}
		default:
			if err := trouble.pause(ctx, err); err != nil {
				return nil, err
			}
		}
	}
}

// awaitChance blocks until the record may be taken over, and for a random time
// more, in which it gives way to a winner.
func (e *Elector) awaitChance(ctx context.Context, f *follower) error {
	for {
		e.mutex.Lock()
		version, from := e.sighting.record.Version, e.sighting.claimable(&e.o)
		e.mutex.Unlock()
		if from <= e.clock.Now().Mono {
			from = e.clock.Now().Mono + e.jitter()
			changed, err := f.wait(ctx, version, from)
			if err != nil || !changed {
				return err
			}
			continue
		}
		if _, err := f.wait(ctx, version, from); err != nil {
			return err
		}
	}
}

// attempt reads the record and, if it may be taken over, makes an acquisition
// with at most so many writes. It takes two round trips when nothing fails.
func (e *Elector) attempt(ctx context.Context, writes int) (*Lease, error) {
	if err := e.healthy(ctx); err != nil {
		return nil, err
	}
	if err := e.pace(ctx); err != nil {
		return nil, err
	}
	r, err := e.load(ctx, e.o.RequestTimeout)
	if err != nil {
		return nil, err
	}
	nonce := e.o.newNonce()
	e.mutex.Lock()
	now := e.clock.Now()
	token, sane, err := e.sighting.nextToken(now.Wall, &e.o)
	free := e.sighting.claimable(&e.o) <= now.Mono && e.sighting.record.Version == r.Version
	if free {
		e.sighting.try(nonce) // in the same step: nothing that speaks against it is missed
	}
	e.mutex.Unlock()
	if !free {
		return nil, &HeldError{e.leader(r)}
	}
	if !sane {
		e.log.Warn("elector: this machine's time of day is before 2020 or after 2200 and is not used for tokens; set its clock")
	}
	if err != nil {
		return nil, err
	}
	return e.acquire(ctx, r, nonce, token, writes)
}

// unlimited is a number of writes that no acquisition reaches.
const unlimited = 1 << 30

// acquire replaces prev, which may be taken over, by a record of our own. After
// a write whose outcome is unknown it reads back, and writes again only while
// prev still stands: all writes of one acquisition compare with the same state,
// so at most one of them is ever applied, and it is known by its number.
func (e *Elector) acquire(ctx context.Context, prev backends.Record, nonce string, token uint64, writes int) (*Lease, error) {
	next := backends.Record{Holder: e.o.ID, Token: token, TTL: e.o.TTL, RenewEvery: e.o.RenewEvery, Value: e.o.Value}
	next.Attempt.Nonce = nonce
	sent := map[uint64]clock.Reading{}
	trouble := e.newTrouble("campaign")
	won := func(r backends.Record) (*Lease, error) {
		if e.overtaken(next) {
			return nil, e.lost(next, &HeldError{e.leader(r)})
		}
		start := sent[r.Attempt.Sequence]
		if clock.Elapsed(e.clock, start) >= e.o.hold() {
			return nil, e.lost(next, fmt.Errorf("%w: the store took longer than the lease to answer", ErrUnavailable))
		}
		trouble.over()
		return e.newLease(ctx, r, sent), nil
	}
	for {
		next.Attempt.Sequence++
		maps.DeleteFunc(sent, func(_ uint64, at clock.Reading) bool { return clock.Elapsed(e.clock, at) >= e.o.hold() })
		sent[next.Attempt.Sequence] = clock.Mark(e.clock)
		r, err := e.swap(ctx, e.o.RequestTimeout, prev, next)
		if err == nil {
			return won(r)
		}
		r, readErr := e.load(ctx, e.o.RequestTimeout)
		switch {
		case readErr != nil:
			err = fmt.Errorf("%w; reading back: %w", err, readErr)
			if permanent(readErr) {
				return nil, e.lost(next, err)
			}
		case r.Exists() && r.Attempt.Nonce == next.Attempt.Nonce:
			return won(r)
		case r.Version != prev.Version:
			return nil, e.lost(next, &HeldError{e.leader(r)})
		}
		if permanent(err) {
			return nil, e.lost(next, err)
		}
		if int(next.Attempt.Sequence) >= writes {
			return nil, e.lost(next, fmt.Errorf("the outcome is not known: %w", err))
		}
		if err := trouble.pause(ctx, err); err != nil {
			return nil, e.lost(next, err)
		}
		if !e.mayRetry(prev, next) {
			return nil, e.lost(next, err)
		}
	}
}

// overtaken reports whether something was seen since the first write of an
// acquisition that speaks against it, although the store has applied it: a
// record that did not exist when the write was sent, and not when it was
// applied, can have come and gone in between, and whoever held it may still
// lead. The record of ours is then taken over like anybody's.
func (e *Elector) overtaken(next backends.Record) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	s := &e.sighting
	return s.rival || next.Token < s.highest || s.held > e.clock.Now().Mono
}

// mayRetry reports whether nothing that was seen since the first write of an
// acquisition speaks against another one. That prev still stands is not enough:
// the version of a record that does not exist is the one that comes back, when
// somebody wins in between and their record vanishes.
func (e *Elector) mayRetry(prev, next backends.Record) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	s := &e.sighting
	if s.record.Attempt.Nonce == next.Attempt.Nonce {
		return true // applied, as something pushed has shown: read it back
	}
	return s.record.Version == prev.Version && !s.rival && next.Token > s.highest && s.claimable(&e.o) <= e.clock.Now().Mono
}

// lost gives up an acquisition.
func (e *Elector) lost(next backends.Record, err error) error {
	e.mutex.Lock()
	e.sighting.abandon(next.Attempt.Nonce)
	e.mutex.Unlock()
	return err
}

// healthy asks Options.Healthy. One that hangs or panics is not healthy.
func (e *Elector) healthy(ctx context.Context) error {
	if e.o.Healthy == nil {
		return nil
	}
	_, err := request(ctx, e, e.o.RequestTimeout, "healthy", func(ctx context.Context) (_ struct{}, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the check panicked: %v", p)
			}
		}()
		return struct{}{}, e.o.Healthy(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnhealthy, err)
	}
	return nil
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	if errors.Is(err, ErrUnhealthy) {
		return false
	}
	return backends.Permanent(err) || errors.Is(err, ErrTokenExhausted)
}

// trouble paces tries that fail, and logs the first failure and the end of
// them.
type trouble struct {
	e     *Elector
	what  string
	count int
}

func (e *Elector) newTrouble(what string) *trouble { return &trouble{e: e, what: what} }

// longestPause bounds the pause after a failure where leases are long.
const longestPause = 10 * time.Second

// pause logs the first error, and waits: longer each time, up to RenewEvery or
// 10 s, and by a random part, so that many candidates do not come back together. It
// returns the cause when ctx ends.
func (t *trouble) pause(ctx context.Context, err error) error {
	e := t.e
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.count++; t.count == 1 {
		e.log.Warn("elector: "+t.what+" fails and is tried again", "error", err)
	}
	d := max(min(e.o.RenewEvery, longestPause)>>max(0, 5-t.count), time.Millisecond)
	d = max(d/2+time.Duration(e.random()*float64(d/2)), e.o.writeInterval)
	wait, stop := e.after(d)
	defer stop()
	select {
	case <-wait:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *trouble) over() {
	if t.count > 0 {
		t.e.log.Info("elector: "+t.what+" works again", "failures", t.count)
		t.count = 0
	}
}

// random returns a random number from 0 to below 1.
func (e *Elector) random() float64 { return float64(e.o.random()>>11) / (1 << 53) }
