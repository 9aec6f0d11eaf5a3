package elector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// request makes one request to the store. It returns when the request is answered,
// after limit, or when ctx ends. It does not wait for a backend that ignores its
// context; the outcome is then unknown, as with any lost answer. The caller has
// registered with begin.
func request[T any](ctx context.Context, e *Elector, limit time.Duration, why purpose, send func(context.Context) (T, error)) (T, *failure) {
	type answer struct {
		value T
		err   error
	}
	parent := ctx
	ctx, cancel := e.clock.WithTimeout(ctx, limit)
	defer cancel()
	start := e.clock.Now().Mono
	unanswered := &e.unanswered[why]
	if unanswered.Load() >= mostUnanswered {
		var none T
		return none, &failure{transient, fmt.Errorf("%w: %d requests hang and ignore their timeouts", ErrUnavailable, mostUnanswered)}
	}
	answers := make(chan answer, 1)
	var state atomic.Int32 // which came first: the answer, or the end of the wait
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		a := answer{err: errGoexit}
		defer func() { // also when send ends its goroutine
			answers <- a
			if !state.CompareAndSwap(0, answered) {
				unanswered.Add(-1)
			}
		}()
		a.value, a.err = send(ctx)
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		select {
		case a = <-answers:
		default:
			a.err = ctx.Err()
			unanswered.Add(1)
			if !state.CompareAndSwap(0, givenUp) {
				unanswered.Add(-1)
			}
		}
	}
	var f *failure
	if a.err != nil {
		f = &failure{kindOf(a.err), a.err}
		switch {
		case f.kind != transient || ctx.Err() == nil:
		case parent.Err() != nil:
			f = &failure{cancelled, fmt.Errorf("%w (%w)", e.ended(parent, nil), f.err)}
		default:
			f.err = fmt.Errorf("%w: no answer within %v (%w)", ErrUnavailable, limit, f.err)
		}
	}
	e.traceRequest(parent, why, e.clock.Now().Mono-start, f)
	return a.value, f
}

var errGoexit = fmt.Errorf("%w: it ended its goroutine", ErrUnavailable)

// The states of a request, once one side is done with it.
const answered, givenUp = 1, 2

// mostUnanswered bounds, for each purpose, the goroutines of a backend that
// ignores its contexts. Simultaneous callers can exceed it by their number.
const mostUnanswered = 16

// load reads the record by itself and enters it into the view. A read-back goes by
// itself: a write without an answer may need a read of its own kind (see
// backends/postgres), and a lease waits for it.
func (e *Elector) load(ctx context.Context, limit time.Duration, why purpose) (backends.Record, *failure) {
	return e.loadBy(ctx, limit, why, func(ctx context.Context, sent func()) (backends.Record, error) {
		sent()
		return e.backend.Load(ctx, e.name)
	})
}

// loadShared is load for a read that may share a request with those of other Electors.
// gather is set if it may wait for them. What it overlaps with counts from when the
// request is sent.
func (e *Elector) loadShared(ctx context.Context, limit time.Duration, why purpose, gather bool) (backends.Record, *failure) {
	return e.loadBy(ctx, limit, why, func(ctx context.Context, sent func()) (backends.Record, error) {
		return e.requests.Load(ctx, e.name, gather, sent)
	})
}

// loadTogether is loadShared without a wait for others.
func (e *Elector) loadTogether(ctx context.Context, limit time.Duration, why purpose) (backends.Record, *failure) {
	return e.loadShared(ctx, limit, why, false)
}

// A loader is a Load that calls sent when the request is about to be sent.
type loader func(ctx context.Context, sent func()) (backends.Record, error)

// loadBy reads the record, by itself or with others, and enters it into the view.
func (e *Elector) loadBy(ctx context.Context, limit time.Duration, why purpose, by loader) (backends.Record, *failure) {
	// A read that overlaps with other reads, or with what the store pushes,
	// may show an older state than they did. Then only another read can show
	// whether the record really went back.
	for range 3 {
		var mark uint64
		var start time.Duration // the wait for others is no part of the round trip
		sent := func() { mark, start = e.view.Mark(), e.clock.Now().Mono }
		r, f := request(ctx, e, limit, why, func(ctx context.Context) (backends.Record, error) {
			r, err := by(ctx, sent)
			if err == nil && r.Exists() {
				err = r.Validate()
			}
			return r, err
		})
		if f != nil {
			return backends.Record{}, f
		}
		now := e.now()
		e.timing.read(now, now-start)
		if e.view.Read(r, mark, now) {
			e.traceNews(ctx)
			return r, nil
		}
	}
	return backends.Record{}, &failure{transient, fmt.Errorf("%w: three reads in a row were overtaken by changes", ErrUnavailable)}
}

// swap replaces prev by next and enters the result into the view. It may share a
// request with the swaps of other Electors; gather is set if it may wait for them.
func (e *Elector) swap(ctx context.Context, limit time.Duration, why purpose, gather bool, prev, next backends.Record) (backends.Record, *failure) {
	return e.swapWhile(ctx, limit, why, gather, nil, prev, next)
}

// swapWhile is a swap that is sent only while may, if it is set, returns true. It may be
// called at any time until the request has ended, from another goroutine.
func (e *Elector) swapWhile(ctx context.Context, limit time.Duration, why purpose, gather bool, may func() bool, prev, next backends.Record) (backends.Record, *failure) {
	e.timing.write(e.clock.Now().Mono)
	r, f := request(ctx, e, limit, why, func(ctx context.Context) (backends.Record, error) {
		return e.requests.Swap(ctx, backends.Change{Name: e.name, Prev: prev, Next: next}, gather, may)
	})
	if f == nil {
		e.view.Wrote(prev, r, e.now())
		e.traceNews(ctx)
	}
	return r, f
}
