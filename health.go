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
