package elector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// keep renews the lease until it is over, and tells the store if it was given
// up. It is the one goroutine that writes the lease's record.
func (l *Lease) keep() {
	e := l.e
	defer e.active.Done()
	defer close(l.kept)
	l.renewUntilOver()
	l.batches.leave()
	over := l.term.Load().over
	if errors.Is(over, ErrLost) {
		e.log.Warn("elector: leads no more", "token", l.token, "cause", over)
	} else {
		e.log.Info("elector: leads no more", "token", l.token, "cause", over)
	}
	e.traceEnded(l, over)
	if errors.Is(over, ErrResigned) {
		l.vacate()
	}
}

func (l *Lease) renewUntilOver() {
	e := l.e
	failures := 0
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
		if err := l.ailing(); err != nil {
			if !l.cedes {
				l.end(l.resigned(err))
				return
			}
			l.sick.Store(true)
			l.cede(l.resigned(err))
		}
		if l.valid() != nil {
			return
		}
		err := l.renew()
		if err != nil {
			if failures++; failures == 1 && l.valid() == nil {
				e.log.Warn("elector: renewal fails and is tried again", "token", l.token, "remaining", l.Remaining(), "error", err)
			}
			next = e.clock.Now().Mono + l.retryAfter()
		} else {
			if failures > 0 {
				e.log.Info("elector: renewal works again", "token", l.token, "failures", failures)
				failures = 0
			}
			next = l.nextRenewal()
			if pending != nil {
				pending.done <- nil
				pending = nil
			}
		}
		if permanent(err) {
			// The store refuses this value, or everything: the one that it took
			// before must not be lost with it, also when nobody waits any more.
			l.value = l.record.Value
			if pending != nil {
				pending.done <- err
				pending = nil
			}
		}
		if pending != nil && pending.ctx.Err() != nil {
			pending = nil
		}
	}
}

// retryAfter is the pause after a renewal that failed: at most a quarter of the
// interval, so that troubles that pass one interval before the end of
// the lease leave time for several tries.
func (l *Lease) retryAfter() time.Duration {
	d := max(min(l.e.o.RenewEvery/4, longestPause), time.Millisecond)
	return max(d/2+time.Duration(l.e.random()*float64(d/2)), l.e.o.writeInterval)
}

// stalled reports whether the worker has not called Check for StallTimeout.
func (l *Lease) stalled() bool {
	most := l.e.o.StallTimeout
	return most > 0 && l.e.clock.Now().Mono-time.Duration(l.checked.Load()) > most
}

// ailing asks Healthy, but not again once the worker was told to stop.
func (l *Lease) ailing() error {
	if l.ctx.Err() != nil {
		return nil
	}
	return l.e.healthy(context.Background())
}

// renew writes the record anew. After every error, a conflict included, it
// reads back: the store may have applied this write or an earlier one, and
// then says conflict to the next. The lease counts from when the very write
// was sent that the store shows.
func (l *Lease) renew() error {
	e := l.e
	next := l.record
	l.number++
	next.Attempt.Sequence, next.Value = l.number, l.value
	l.sent[l.number] = clock.Mark(e.clock)
	r, err := e.swapBy(context.Background(), l.limit(), l.sender(), l.record, next)
	var shared sharedError
	l.alone = errors.As(err, &shared)
	if err == nil {
		return l.adopt(r)
	}
	if errors.Is(err, ErrDeposed) {
		l.end(l.lostBecause(err))
		return err
	}
	r, readErr := e.load(context.Background(), l.limit())
	switch {
	case errors.Is(readErr, ErrForeignRecord):
		l.end(l.lostBecause(readErr))
		return readErr
	case readErr != nil:
		return fmt.Errorf("%w; reading back: %w", err, readErr)
	case !l.ours(r):
		l.end(l.lostBecause(fmt.Errorf("the record was changed: %w", describe(r))))
		return err
	}
	if adoptErr := l.adopt(r); adoptErr != nil || r.Attempt.Sequence == l.number {
		return adoptErr
	}
	return err
}

// limit caps a request by what is left of the lease as it stands, so that one
// that hangs is given up before the lease is.
func (l *Lease) limit() time.Duration {
	return max(min(l.e.o.RequestTimeout, l.Remaining()), 1)
}

// ours reports whether a record is of this very acquisition.
func (l *Lease) ours(r backends.Record) bool {
	return r.Exists() && r.Attempt.Nonce == l.nonce && Token(r.Token) == l.token
}

// adopt goes on from a state of our own that the store has shown.
func (l *Lease) adopt(r backends.Record) error {
	start, known := l.sent[r.Attempt.Sequence]
	if !known {
		err := l.lostBecause(fmt.Errorf("%w: it shows a renewal that is out of date", ErrTokenRegressed))
		l.end(err)
		return err
	}
	if r.Version == l.record.Version {
		return l.valid() // nothing was applied so far, and any write still can be
	}
	// No other write of ours can be applied any more: all of them compared with
	// the state that this one has replaced.
	l.record = r
	clear(l.sent)
	l.sent[r.Attempt.Sequence] = start
	if err := l.extend(start); err != nil {
		return err
	}
	l.e.traceRenewed(l)
	return nil
}

// describe says what stands where our record was.
func describe(r backends.Record) error {
	switch {
	case !r.Exists():
		return errors.New("it is gone; if nobody deleted it, look for rules that expire or delete what is in the store")
	case r.Vacant():
		return fmt.Errorf("it is vacant after token %d", r.Token)
	}
	return fmt.Errorf("%q holds it with token %d", r.Holder, r.Token)
}

// vacate tells the store that the election is free. It compares with our own
// record, so it cannot hurt a successor, however late it arrives. It tries for
// ReleaseTimeout, on a context of its own: the ones that led here have ended.
func (l *Lease) vacate() {
	e := l.e
	ctx, cancel := e.clock.WithTimeout(context.Background(), e.o.ReleaseTimeout)
	defer cancel()
	err := l.writeVacancy(ctx)
	if err != nil {
		err = fmt.Errorf("the store was not told: %w; successors wait until the record expires, or call Resign again", err)
		e.log.Warn("elector: release failed", "token", l.token, "error", err)
	}
	l.mutex.Lock()
	l.releaseErr = err
	close(l.released)
	l.mutex.Unlock()
	e.traceReleased(l, err)
}

func (l *Lease) writeVacancy(ctx context.Context) error {
	e := l.e
	trouble := e.newTrouble("release")
	for {
		if err := e.pace(ctx); err != nil {
			return err
		}
		next := l.record
		l.number++
		next.Holder, next.Value, next.Attempt.Sequence = "", "", l.number
		_, err := e.swap(ctx, e.o.RequestTimeout, l.record, next)
		if err == nil {
			return nil
		}
		r, readErr := e.load(ctx, e.o.RequestTimeout)
		if readErr == nil {
			if !l.ours(r) || r.Vacant() {
				return nil // applied, or not ours any more
			}
			l.record = r
		}
		switch {
		case permanent(err):
			return err
		case permanent(readErr):
			return readErr
		case readErr == nil && errors.Is(err, backends.ErrConflict):
			continue // with what stands there now
		}
		if trouble.pause(ctx, err) != nil {
			return err
		}
	}
}
