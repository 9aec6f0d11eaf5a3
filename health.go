package elector

import (
	"context"
	"fmt"
	"time"
)

// checkHealth calls Options.Healthy. A call that hangs or panics is a failure.
func (e *Elector) checkHealth(ctx context.Context) *failure {
	if e.o.Healthy == nil {
		return nil
	}
	f := e.examine(ctx)
	if f == nil || f.kind == cancelled {
		return f
	}
	return &failure{notHealthy, fmt.Errorf("%w: %w", ErrUnhealthy, f.err)}
}

// stillHealthy calls Options.Healthy. A candidate that has made a bid has called it while it
// waited, within about two renewal intervals, so that a slow call delays no handover.
func (e *Elector) stillHealthy(ctx context.Context) *failure {
	if e.now() < time.Duration(e.wellUntil.Load()) {
		return nil
	}
	return e.checkHealth(ctx)
}

// mostExamining bounds the calls of Options.Healthy that do not return.
const mostExamining = 16

// examine calls Options.Healthy. It does not wait for longer than RequestTimeout.
func (e *Elector) examine(ctx context.Context) *failure {
	if e.examining.Load() >= mostExamining {
		return &failure{transient, fmt.Errorf("%w: %d calls hang and ignore their timeouts", ErrUnavailable, mostExamining)}
	}
	parent, start := ctx, e.now()
	ctx, cancel := e.clock.WithTimeout(ctx, e.o.RequestTimeout)
	defer cancel()
	answer := make(chan error, 1)
	e.active.Add(1)
	e.examining.Add(1)
	go func() {
		defer e.active.Done()
		defer e.examining.Add(-1)
		err := errGoexit
		defer func() { // also when Healthy ends its goroutine
			if p := recover(); p != nil {
				err = fmt.Errorf("the check panicked: %v", p)
			}
			answer <- err
		}()
		if err = e.o.Healthy(ctx); err != nil {
			err = usersError{err}
		}
	}()
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		select {
		case err = <-answer:
		default:
			err = ctx.Err()
		}
	}
	f := e.failed(parent, ctx, e.o.RequestTimeout, err, false)
	e.traceRequest(parent, examining, e.now()-start, f)
	return f
}

var errGoexit = fmt.Errorf("%w: it ended its goroutine", ErrUnavailable)
