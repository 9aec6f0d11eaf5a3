package elector

import (
	"context"
	"errors"
	"fmt"
)

// Run campaigns, calls work while this process leads, and campaigns again after
// a loss. It blocks until ctx ends, or until work returns while the lease is
// valid or after work has resigned, other than upon a request; then Run returns what
// work returned. If ctx is cancelled, or the Elector closed, while Run waits to
// lead, Run returns nil: a process that is told to stop has not failed. If a
// deadline of ctx passes while Run waits, Run returns the deadline's error and the
// reason of the wait.
// Run returns early, with the error, when Campaign does: a store that refuses ends Run before
// this Elector has led or has seen another leader, and not later. It returns ErrInvalid if
// work is nil.
//
// work gets a context that ends when it must stop, and the lease: call the
// lease's Check before each side effect, and send its Token along. work runs on
// Run's goroutine, once at a time.
//
// When ctx ends, Healthy fails, another process requests the resignation, or
// Resign or Close is called on the Elector, first the context of work ends. The
// lease stays valid and renewed until work has returned, for at most
// ReleaseTimeout; then the lease ends, and then the record is released. When the lease
// is lost, or work takes longer than that, the lease and the context end at once.
// Run then waits for work, logs what work returned, and campaigns again; or it
// returns ErrLost if it had been told to stop. If work took longer, or after a deposition
// (see ErrDeposed), the record is then released, as long as the lease could have lasted: before
// Run campaigns again, or after it has returned, and Close waits for that.
// A record that still shows its own lost lease this Elector may take over at once. After a
// deposition or a request (see [operate.Operator]) this candidate first waits until another one has led,
// for at most TTL*(1+ClockDrift).
//
// A panic in work passes through Run: the lease ends at once, and the record is
// not released, so that another process starts only after TTL*(1+ClockDrift). This
// Elector may campaign again at once: its work has stopped.
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
		l, err := e.settleLast(ctx, e.campaignWarm)
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

// campaignWarm campaigns, with Options.Standby beside it, and returns once that has returned.
func (e *Elector) campaignWarm(ctx context.Context) (*Lease, error) {
	if e.o.Standby == nil {
		return e.campaign(ctx)
	}
	standby, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.o.Standby(standby)
	}()
	l, err := e.campaign(ctx)
	cancel()
	if err == nil {
		l.liveFor(e.o.ReleaseTimeout) // no worker can call Check meanwhile
	}
	late, stop := e.clock.WithTimeout(context.Background(), e.o.ReleaseTimeout)
	defer stop()
	select {
	case <-done:
		return l, err
	case <-late.Done():
	}
	if err == nil {
		late := fmt.Errorf("its Standby has not returned within %v", e.o.ReleaseTimeout)
		e.log.Warn("elector: resigns, because Standby does not return", "token", l.token, "after", e.o.ReleaseTimeout)
		l.move(resigned, unhealthy, l.resignedBecause(late)) // Run campaigns again
	}
	<-done
	return l, err
}

// lead calls work under the lease, and reports whether Run is done.
func (l *Lease) lead(ctx context.Context, work func(context.Context, *Lease) error) (done bool, err error) {
	e := l.e
	if ctx.Err() != nil {
		l.giveUp()
		<-l.idle
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
			l.writeRelease(workPanicked)
			l.move(lost, none, l.lostBecause(errors.New("the worker panicked or ended its goroutine")))
		}
	}()
	if l.valid() == nil { // or Standby has returned too late
		l.live()
		err = work(l.ctx, l)
	}
	returned = true

	l.giveUp()
	s := l.status.Load()
	if s.phase == resigned && s.why != unhealthy && s.why != requested {
		<-l.idle // the release was written, or failed and was logged
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
