package elector

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/rule"
)

// A release writes into the record that a lease has ended. It is the last renewal: it
// compares with the process's own record, and is sent only before the lease could be over
// (see acquisition.vacate), so it cannot harm a successor, however late it arrives.
//
//	unwritten ──▶ writing ──▶ written, or the record is not this process's any more
//	                     ──▶ failed
//	                     ──▶ never
//
// When it is written:
//
//	               resigned   overran or deposed   lost
//	leaseEnded     write      -                    -
//	workReturned   -          write                never
//	workPanicked   -          never                never (the phase may still be held)
type release struct {
	begun atomic.Bool            // it is not unwritten any more
	named atomic.Pointer[string] // ID of the candidate that should lead next
	pause atomic.Pointer[annex.Pause]
	done  chan struct{} // closed unless it is unwritten or writing
	err   error         // why it failed, once done is closed
}

// An occasion is an event upon which a release may be written.
type occasion uint8

const (
	leaseEnded occasion = iota
	workReturned
	workPanicked
)

// writeRelease writes the release, if this is the occasion to do so. It blocks until that
// is done.
func (l *Lease) writeRelease(on occasion) {
	e, phase := l.e, l.status.Load().phase
	if on == workReturned {
		e.view.Over(l.own.nonce)
	}
	step, err := "give_up", error(nil)
	switch {
	case on == leaseEnded && phase != resigned, on != leaseEnded && phase == resigned, !l.begin():
		return
	case on == leaseEnded, on == workReturned && phase != lost:
		if step, err = "written", l.vacate(); err != nil {
			step = "fail"
		}
	}
	if phase == deposed || l.status.Load().why == requested || on != workPanicked && e.annex.Of(l.own.record).Request.Token != 0 { // the renewals still run beside a panic
		e.standBack(l.own.nonce)
	}
	e.view.Take(rule.Step{Name: step, Nonce: l.won.Attempt.Nonce}, func() bool { return true })
	l.release.err = err
	close(l.release.done)
}

// begin reports whether the caller must write the release now. The caller then owns
// the acquisition.
func (l *Lease) begin() bool {
	return l.e.view.Take(rule.Step{Name: "write", Nonce: l.won.Attempt.Nonce}, func() bool {
		return l.release.begun.CompareAndSwap(false, true)
	})
}

// workReturned is called when the work under the lease has certainly stopped: the
// worker in Run has returned, or the caller campaigns again. It blocks until the
// release has been written, if that is due, or until ctx ends; the release then goes on,
// and Close waits for it.
func (l *Lease) workReturned(ctx context.Context) {
	settled := make(chan struct{})
	l.e.active.Add(1)
	go func() {
		defer l.e.active.Done()
		defer close(settled)
		<-l.idle
		l.writeRelease(workReturned)
		<-l.release.done // another caller may be writing
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// Release ends the lease: the lease is no longer valid, its context ends, and then
// the record is released, so that a successor need not wait for the TTL. Release blocks
// until the store has acknowledged the release, for at most ReleaseTimeout and
// the rest of a renewal that is under way. If ctx ends first, Release returns the
// cause, and the release goes on; Close waits for it.
//
// A worker in Run must have ended its work before it calls its lease's Release,
// because the release is written at once. Run then returns, unless another process has
// requested the resignation: see [operate.Operator]. To stop a worker in an orderly way,
// call Resign on the Elector.
//
// A release is the last renewal: it is tried again until the lease would have ended
// without it. If it could not be written, Release returns why, each time. This process
// still no longer leads, and the record expires after TTL*(1+ClockDrift) of a challenger's
// clock. A release never touches a successor's record. After the loss of the lease Release
// returns ErrLost.
func (l *Lease) Release(ctx context.Context) error {
	if ctx == nil {
		return l.e.fail("resign", errNilContext)
	}
	if l.valid() == nil {
		why := stop
		if l.status.Load().why == requested {
			why = requested // Run campaigns again
		}
		l.move(resigned, why, l.resignedBecause(nil))
	}
	if s := l.status.Load(); s.phase != resigned {
		return s.cause
	}
	if ctx.Value(workOf{l}) != nil {
		ctx = context.WithoutCancel(ctx) // it has ended with the lease
	}
	return l.e.fail("resign", l.settled(ctx))
}

// waitReleased blocks until the lease is over and its release is written, or until ctx
// ends. It returns why the lease was lost, or why the release could not be written.
func (l *Lease) waitReleased(ctx context.Context) error {
	select {
	case <-l.ended:
	case <-ctx.Done():
		return usersError{context.Cause(ctx)}
	}
	if s := l.status.Load(); s.phase != resigned {
		return s.cause
	}
	return l.settled(ctx)
}

// settled blocks until the release has ended or ctx ends, and returns why it could not be
// written.
func (l *Lease) settled(ctx context.Context) error {
	select {
	case <-l.release.done:
		return l.release.err
	case <-ctx.Done():
		return usersError{context.Cause(ctx)}
	}
}

// released reports whether nothing is left to write for a lease that is over: it was lost,
// or its release is written.
func (l *Lease) released() bool {
	if l.status.Load().phase != resigned {
		return true
	}
	select {
	case <-l.release.done:
		return l.release.err == nil
	default:
		return false
	}
}

// vacate replaces the record by a vacancy that names the candidate that should lead next.
// It tries for ReleaseTimeout, on a context of its own: those of its callers have ended.
func (l *Lease) vacate() error {
	e := l.e
	if named := l.release.named.Load(); named != nil {
		l.own.successor = *named
	}
	l.own.why, l.own.pause = l.status.Load().ending(), l.release.pause.Load()
	start := e.clock.Now().Mono
	err := l.own.vacate()
	took := e.clock.Now().Mono - start
	if err != nil {
		err = fmt.Errorf("the release was not written: %w; successors wait until the record expires", err)
		e.log.Warn("elector: release failed", "token", l.token, "error", err)
	}
	info := l.info(err)
	info.Duration = took
	traced(e, e.o.Trace.Released, l.ctx, info)
	return err
}
