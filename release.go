package elector

import (
	"context"
	"fmt"
	"sync"

	"github.com/elector-go/elector/internal/annex"
)

// A release is what the store knows of the end of a lease:
//
//	untold ──▶ telling ──▶ told, or failed ──Resign──▶ telling
//	untold ──▶ never
//
// What happens on which occasion:
//
//	               resigned    lost or deposed
//	leaseEnded     tell        -
//	workReturned   -           tell if the record may be retaken at once, otherwise never
//	workPanicked   -           never
//	Lease.Resign   tell again  -
//
// A release compares with the process's own record, so it cannot harm a
// successor, however late it arrives.
type release struct {
	mutex sync.Mutex
	state knowledge
	err   error         // why it failed
	done  chan struct{} // closed unless it is untold or telling
	named string        // ID of the candidate that should lead next, for the next try to tell
	next  string        // the same, for the try that began last
}

// A knowledge is what the store knows.
type knowledge uint8

const (
	untold knowledge = iota
	telling
	told
	failed
	never
)

// begin reports whether the caller must tell the store now. The caller then owns
// the acquisition, and next, until finish.
func (r *release) begin(from knowledge) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.state != from {
		return false
	}
	if from == failed {
		r.done = make(chan struct{})
	}
	r.state = telling
	r.next, r.named = r.named, ""
	return true
}

// name records who should lead next.
func (r *release) name(successor string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.named = successor
}

// unname takes back what name recorded, unless the release that it is for is still
// to begin.
func (r *release) unname(successor string, goesOn bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.named == successor && (goesOn || r.state != untold) {
		r.named = ""
	}
}

func (r *release) finish(state knowledge, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.state, r.err = state, err
	close(r.done)
}

// known returns what the store knows, a channel that is closed once that is
// settled, and why the store could not be told.
func (r *release) known() (state knowledge, settled <-chan struct{}, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.state, r.done, r.err
}

// An occasion is an event upon which the store may be told.
type occasion uint8

const (
	leaseEnded occasion = iota
	workReturned
	workPanicked
)

// tell tells the store that the lease has ended, if this is the occasion to do so.
// It blocks until that is done.
func (l *Lease) tell(on occasion) {
	e, phase := l.e, l.status.Load().phase
	free := on == workReturned && e.view.Abandon(l.own.nonce)
	state, err := never, error(nil)
	switch {
	case on == leaseEnded && phase != resigned, on != leaseEnded && phase == resigned, !l.release.begin(untold):
		return
	case on == leaseEnded, free:
		state, err = l.vacate()
	}
	if phase == deposed || l.status.Load().why == requested || on != workPanicked && annex.RequestOf(l.own.record).Token != 0 { // the renewals still run beside a panic
		e.standBack(l.own.nonce)
	}
	l.release.finish(state, err)
}

// workReturned is called when the work under the lease has certainly stopped: the
// worker in Run has returned, or the caller campaigns again. It blocks until the
// store has been told, if that is due, or until ctx ends; the release then goes
// on, and Close waits for it.
func (l *Lease) workReturned(ctx context.Context) {
	settled := make(chan struct{})
	l.e.active.Add(1)
	go func() {
		defer l.e.active.Done()
		defer close(settled)
		<-l.idle
		l.tell(workReturned)
		_, done, _ := l.release.known()
		<-done // another caller may be telling
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// Resign ends the lease: the lease is no longer valid, its context ends, and then
// the store is told, so that a successor need not wait for the TTL. Resign blocks
// until the store has acknowledged the release, for at most ReleaseTimeout and
// the rest of a renewal that is under way. If ctx ends first, Resign returns the
// cause, and the release goes on; Close waits for it.
//
// A worker in Run must have ended its work before it calls its lease's Resign,
// because the store is told at once. Run then returns, unless another process has
// requested the resignation: see RequestResign. To stop a worker in an orderly way,
// call Resign on the Elector.
//
// If the store could not be told, Resign returns why. This process still no
// longer leads, the record expires after TTL*(1+ClockDrift) of a challenger's
// clock, and a further Resign tries again. A release never touches a successor's
// record. After the loss of the lease Resign returns ErrLost.
func (l *Lease) Resign(ctx context.Context) error {
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
	if state, _, _ := l.release.known(); state == failed {
		if err := l.e.begin(ctx); err != nil {
			return l.e.fail("resign", err)
		}
		if !l.release.begin(failed) {
			l.e.active.Done() // another caller tells
		} else {
			go func() {
				defer l.e.active.Done()
				l.release.finish(l.vacate())
			}()
		}
	}
	return l.e.fail("resign", l.settled(ctx))
}

// farewell blocks until the lease is over and the store has been told that it
// was resigned, or until ctx ends. It returns why it was lost, or why the store
// could not be told.
func (l *Lease) farewell(ctx context.Context) error {
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

// settled blocks until the release has ended or ctx ends, and returns why the
// store could not be told.
func (l *Lease) settled(ctx context.Context) error {
	_, done, _ := l.release.known()
	select {
	case <-done:
		_, _, err := l.release.known()
		return err
	case <-ctx.Done():
		return usersError{context.Cause(ctx)}
	}
}

// nothingToTell reports whether nothing is left to tell about a lease that is over:
// it was lost, or the store knows that it was resigned.
func (l *Lease) nothingToTell() bool {
	state, _, _ := l.release.known()
	return l.status.Load().phase != resigned || state == told
}

// vacate tells the store that the election is vacant, and who should lead next. It
// tries for ReleaseTimeout, on a context of its own: those of its callers have ended.
func (l *Lease) vacate() (knowledge, error) {
	e := l.e
	state := told
	l.own.successor, l.own.why = l.release.next, l.status.Load().ending()
	start := e.clock.Now().Mono
	err := l.own.vacate()
	took := e.clock.Now().Mono - start
	if err != nil {
		state = failed
		err = fmt.Errorf("the store was not told: %w; successors wait until the record expires, or call Resign again", err)
		e.log.Warn("elector: release failed", "token", l.token, "error", err)
	}
	info := l.info(err)
	info.Duration = took
	traced(e, e.o.Trace.Released, l.ctx, info)
	return state, err
}
