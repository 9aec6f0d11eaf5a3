package elector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// request makes one request to the store and returns when it is answered,
// after limit, or when ctx ends. It does not wait for a backend that ignores
// its context, so that nothing above depends on one that hangs; the outcome is
// then as unknown as that of any lost answer. The caller is counted in.
func request[T any](ctx context.Context, e *Elector, limit time.Duration, op string, send func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	parent := ctx
	ctx, cancel := e.clock.WithTimeout(ctx, limit)
	defer cancel()
	start := e.clock.Now().Mono
	if e.unanswered.Load() >= mostUnanswered {
		var none T
		return none, fmt.Errorf("%w: %d requests hang and ignore their timeouts", ErrUnavailable, mostUnanswered)
	}
	answers := make(chan answer, 1)
	var state atomic.Int32 // who is first: the answer, or the end of patience
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		value, err := send(ctx)
		answers <- answer{value, err}
		if !state.CompareAndSwap(0, answered) {
			e.unanswered.Add(-1)
		}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		select {
		case a = <-answers:
		default:
			a.err = ctx.Err()
			e.unanswered.Add(1)
			if !state.CompareAndSwap(0, givenUp) {
				e.unanswered.Add(-1)
			}
		}
	}
	if a.err != nil && ctx.Err() != nil && !errors.Is(a.err, backends.ErrConflict) && !backends.Permanent(a.err) {
		if parent.Err() != nil {
			a.err = fmt.Errorf("%w (%w)", context.Cause(parent), a.err)
		} else {
			a.err = fmt.Errorf("%w: no answer within %v (%w)", ErrUnavailable, limit, a.err)
		}
	}
	e.traceRequest(op, e.clock.Now().Mono-start, a.err)
	return a.value, a.err
}

// The states of a request that is over for one side.
const answered, givenUp = 1, 2

// mostUnanswered bounds the goroutines that a backend keeps which ignores its
// contexts; callers at the same moment can exceed it by their number.
const mostUnanswered = 16

// load reads the record and takes note of it.
func (e *Elector) load(ctx context.Context, limit time.Duration) (backends.Record, error) {
	// A read that overlaps with other reads, or with what the store pushes,
	// may show an older state than they did. Then only another read tells
	// whether the record really went back.
	for range 3 {
		e.mutex.Lock()
		before := e.sighting.count
		e.mutex.Unlock()
		start := e.clock.Now().Mono
		r, err := request(ctx, e, limit, "load", func(ctx context.Context) (backends.Record, error) {
			return e.backend.Load(ctx, e.name)
		})
		if err == nil && r.Exists() {
			err = r.Validate()
		}
		if err != nil {
			return backends.Record{}, err
		}
		e.timed(e.clock.Now().Mono - start)
		if e.note(r, before) {
			return r, nil
		}
	}
	return backends.Record{}, fmt.Errorf("%w: three reads in a row were overtaken by changes", ErrUnavailable)
}

// swap replaces prev by next and takes note of it.
func (e *Elector) swap(ctx context.Context, limit time.Duration, prev, next backends.Record) (backends.Record, error) {
	return e.swapBy(ctx, limit, e.backend.Swap, prev, next)
}

// A swapper is a Swap.
type swapper func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error)

// swapBy is swap through somebody else's hands.
func (e *Elector) swapBy(ctx context.Context, limit time.Duration, by swapper, prev, next backends.Record) (backends.Record, error) {
	e.mutex.Lock()
	e.wrote = e.clock.Now().Mono
	e.mutex.Unlock()
	r, err := request(ctx, e, limit, "swap", func(ctx context.Context) (backends.Record, error) {
		return by(ctx, e.name, prev, next)
	})
	if err == nil {
		e.note(r, ignoreOlder)
	}
	return r, err
}

// tooEarly returns how long it is until this process may write the record again
// on a store that bears only so many writes. What others write is not counted:
// nobody knows when.
func (e *Elector) tooEarly() time.Duration {
	if e.o.writeInterval == 0 {
		return 0
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.wrote == 0 {
		return 0
	}
	return e.wrote + e.o.writeInterval - e.clock.Now().Mono
}

// pace blocks until this process may write the record again. It returns the
// cause when ctx ends.
func (e *Elector) pace(ctx context.Context) error {
	early := e.tooEarly()
	if early <= 0 {
		return nil
	}
	due, stop := e.after(early)
	defer stop()
	select {
	case <-due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// timed takes note of how long a read took, smoothed over about eight, but for
// the first one, which may have had to connect. How long reads wait for each
// other counts: it is for so long that a winner is not seen.
func (e *Elector) timed(d time.Duration) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.reads++; e.reads <= 2 {
		e.roundTrip = d
	}
	e.roundTrip += (d - e.roundTrip) / 8
}

// ignoreOlder is a count of sightings that never was: see note.
const ignoreOlder = ^uint64(0)

// note takes note of a state that the store has just shown. It returns false,
// and forgets it, if the state is older than one seen and something else was
// seen since the count was before: then it may be a late answer.
func (e *Elector) note(r backends.Record, before uint64) bool {
	now := e.clock.Now().Mono
	e.mutex.Lock()
	s := &e.sighting
	if s.goesBack(r) && s.count != before {
		e.mutex.Unlock()
		return false
	}
	fresh := !s.any || r.Version != s.record.Version
	s.see(r, now, &e.o)
	e.mutex.Unlock()
	if fresh {
		e.traceObserved(e.leader(r))
	}
	return true
}

// doubted takes note of a state that was pushed and is not believed. Where there
// was no record it may be somebody's who won with a lower token, and be gone
// before it is read.
func (e *Elector) doubted(r backends.Record) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if s := &e.sighting; !s.record.Exists() && r.Attempt.Nonce != s.last.Attempt.Nonce {
		s.meet(r.Attempt.Nonce)
	}
}

// vanished takes note that the record was gone for a while, although it may
// be back.
func (e *Elector) vanished() {
	now := e.clock.Now().Mono
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.sighting.distrust(now, &e.o)
}
