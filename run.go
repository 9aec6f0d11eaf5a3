package elector

import (
	"context"
	"errors"
)

// Run campaigns, calls work while this process leads, and campaigns again
// after a loss, until ctx ends or work returns while it still leads, or after it
// resigned by itself; then Run returns what work returned. It blocks meanwhile. It returns early, with the
// error, when campaigning cannot succeed; see Campaign.
//
// work gets a context that ends when it shall stop, and the lease: call its
// Check before each side effect and send its Token along. work runs on Run's
// goroutine, never twice at a time.
//
// When ctx ends, Healthy fails, or Resign or Close is called on the Elector, the work's context ends
// first, and the lease stays valid and renewed until work has returned, for at
// most ReleaseTimeout; then the lease ends, and then the store is told. When
// the lease is lost, it is invalid and the context ends at once; what work then
// returns is logged, and Run campaigns again. A leader that was deposed (see
// ErrDeposed) tells the store once its work has returned, and stands back for
// TTL*(1+ClockDrift), so that another one gets the office.
//
// A panic in work goes through: the lease ends at once, and the store is not
// told, so that another process starts only after the TTL.
func (e *Elector) Run(ctx context.Context, work func(ctx context.Context, lease *Lease) error) error {
	if err := e.enter(true); err != nil {
		return e.fail("run", err)
	}
	defer e.active.Done()
	defer e.leave()
	ctx, cancel := e.joined(ctx)
	defer cancel()
	for {
		l, err := e.afterLast(ctx, e.campaign)
		if err != nil {
			return e.fail("run", err)
		}
		if done, err := l.lead(ctx, work); done {
			return err
		}
	}
}

// lead calls work under the lease, and reports whether Run is done.
func (l *Lease) lead(ctx context.Context, work func(context.Context, *Lease) error) (done bool, err error) {
	e := l.e
	if ctx.Err() != nil {
		l.giveUp()
		<-l.kept
		l.stepDown()
		return true, e.fail("run", context.Cause(ctx))
	}
	stop := context.AfterFunc(ctx, func() { l.cede(l.resigned(context.Cause(ctx))) })
	returned := false
	defer func() {
		stop()
		if !returned {
			l.end(l.lostBecause(errors.New("the worker panicked or ended its goroutine")))
		}
	}()
	err = work(l.ctx, l)
	returned = true

	ailing := l.sick.Load()
	if over := l.giveUp(); !errors.Is(over, ErrResigned) || ailing {
		e.log.Info("elector: the worker returned after its leadership ended", "token", l.token, "cause", over, "error", err)
		<-l.kept
		l.stepDown()
		if l.asked.Load() && !ailing {
			return true, e.fail("run", over)
		}
		return false, nil
	}
	<-l.kept // the store has been told, or that failed and was logged
	return true, err
}
