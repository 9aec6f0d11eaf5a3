package elector

import (
	"context"
	"errors"
	"fmt"
)

// Run campaigns, calls work while this process leads, and campaigns again
// after a loss, until ctx ends or work returns while it still leads, or after it
// resigned by itself; then Run returns what work returned. It blocks meanwhile.
// If ctx is cancelled or the Elector closed while Run waits to lead, it returns
// nil: to be told to stop is no failure. If ctx has a deadline that passes then,
// Run returns that with what it waited for. It returns early, with the error,
// when campaigning cannot succeed, see Campaign; and ErrInvalid if work is nil.
//
// work gets a context that ends when it shall stop, and the lease: call its
// Check before each side effect and send its Token along. work runs on Run's
// goroutine, never twice at a time.
//
// When ctx ends, Healthy fails, or Resign or Close is called on the Elector, the
// work's context ends first, and the lease stays valid and renewed until work
// has returned, for at most ReleaseTimeout; then the lease ends, and then the
// store is told. When the lease is lost, or work takes longer than that, it is
// invalid and the context ends at once. Run then waits for work; the store is
// told that the record is vacant when work has returned, if the record still is
// this process's. What work returned is logged, and Run campaigns again, or
// returns ErrLost if it had been told to stop. After a deposition (see
// ErrDeposed) this candidate first waits for TTL*(1+ClockDrift), so that another
// one can lead.
//
// A panic in work goes through: the lease ends at once, and the store is not
// told, so that another process starts only after TTL*(1+ClockDrift).
func (e *Elector) Run(ctx context.Context, work func(ctx context.Context, lease *Lease) error) error {
	if work == nil {
		return e.fail("run", fmt.Errorf("%w: the worker is nil", ErrInvalid))
	}
	if err := e.enter(ctx, true); err != nil {
		return e.fail("run", err)
	}
	defer e.active.Done()
	defer e.leave()
	ctx, cancel := e.joined(ctx)
	defer cancel()
	for {
		l, err := e.afterLast(ctx, e.campaign)
		if err != nil {
			if toldToStop(ctx) {
				err = nil
			}
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
		if !toldToStop(ctx) {
			err = e.ended(ctx, nil)
		}
		return true, e.fail("run", err)
	}
	unhook := context.AfterFunc(ctx, func() { l.drain(stop, e.ended(ctx, nil)) })
	returned := false
	defer func() {
		unhook()
		if !returned {
			l.tell(workPanicked)
			l.move(lost, none, l.lostBecause(errors.New("the worker panicked or ended its goroutine")))
		}
	}()
	err = work(l.ctx, l)
	returned = true

	l.giveUp()
	s := l.status.Load()
	if s.phase == resigned && s.why != unhealthy {
		<-l.kept // the store has been told, or that failed and was logged
		return true, err
	}
	e.log.Info("elector: the worker returned after its leadership ended", "token", l.token, "error", err)
	l.workReturned(ctx)
	if l.status.Load().why != stop {
		return false, nil
	}
	if err != nil {
		return true, e.fail("run", fmt.Errorf("%w; the worker returned: %w", s.cause, usersError{err}))
	}
	return true, s.cause
}
