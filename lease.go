package elector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// A Lease is this process's hold on an election. It is valid for
// TTL*(1-ClockDrift) from the moment before the last acknowledged request for
// it was sent, and never again once it was not (Gray and Cheriton, "Leases",
// 1989). Its methods may be called by many goroutines.
//
// How it ends, in Run, and what the store knows of that (see release.go):
//
//	held ──ctx, Healthy, Resign, Close──▶ draining ──the worker returned──▶ resigned
//	held, draining ──Lease.Resign─────────────────────────────────────────▶ resigned
//	held, draining ──expiry, conflict, foreign or edited record,
//	                 ReleaseTimeout, panic or Goexit──────────────────────▶ lost
//	held, draining ──mark of presence removed─────────────────────────────▶ deposed
//
// A lease of Campaign does not drain: Healthy and Close resign it.
type Lease struct {
	e     *Elector
	token Token
	hold  time.Duration
	inRun bool // Run ends it once the worker has returned

	ctx    context.Context
	cancel context.CancelCauseFunc

	status  atomic.Pointer[status]
	ended   chan struct{} // closed when the lease is over
	kept    chan struct{} // closed when its goroutine has ended
	checked atomic.Int64  // monotonic, when Check was last called
	release release

	proposals chan *proposal
	batches   *batches // of the backend's leases; nil if it makes none

	// Owned by the goroutine that keeps the lease, and then by those who tell
	// the store: see release.begin.
	own    *acquisition
	value  string  // to write with the next renewal
	shares sharing // with other leases
	faults *backoff

	mutex   sync.Mutex
	unwatch func()         // ends the watch of the mark of presence
	timers  [2]func() bool // stop those at the end of the term and of draining
}

// A phase is where a lease is in its life.
type phase uint8

const (
	held phase = iota
	draining
	resigned
	lost
	deposed
)

// over reports whether the lease is not valid any more, for good.
func (p phase) over() bool { return p >= resigned }

// A reason is why the worker was told to stop. It only grows, also when the
// lease is over, and decides what Run does then.
type reason uint8

const (
	none      reason = iota
	unhealthy        // Run campaigns again
	stop             // Run returns: ctx ended, or Resign or Close was called
)

// A status is all that changes in the life of a lease. It is replaced as a
// whole.
type status struct {
	phase phase
	why   reason
	start clock.Reading // t0: the lease is valid for H from here
	cause error         // of the phase: the worker's context has it
	fault error         // of the last renewal, if that failed
}

// newLease starts to keep a record that an acknowledged write, or a read-back,
// has shown to be ours. base gives the lease's context its values.
func (e *Elector) newLease(base context.Context, own *acquisition) *Lease {
	l := &Lease{
		e: e, token: Token(own.token), hold: e.o.hold(), inRun: e.running,
		ended: make(chan struct{}), kept: make(chan struct{}),
		proposals: make(chan *proposal), batches: batchesOf(e.backend),
		own: own, value: own.record.Value, faults: e.newBackoff("renewal"),
	}
	l.release.done = make(chan struct{})
	// No other write of the acquisition counts any more: of a creation it would be
	// one that was on its way while other records came and went.
	won := own.sent[own.record.Attempt.Sequence]
	clear(own.sent)
	own.sent[own.record.Attempt.Sequence] = won
	start := won.start
	l.ctx, l.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(base), workOf{l}, true))
	l.status.Store(&status{start: start})
	l.checked.Store(int64(start.Mono))
	e.current.Store(l)
	l.expireLater()
	e.log.Info("elector: leads", "token", l.token)
	told := make(chan struct{})
	e.active.Add(1)
	r := own.record
	go l.keep(told)
	traced(e, e.o.Trace.Acquired, l.ctx, l.info(nil)) // before anything renews the lease: it may block
	close(told)
	if w, ok := e.backend.(backends.PresenceWatcher); ok {
		l.watchPresence(w, r)
	}
	return l
}

// workOf is the key of a value that the context of a lease's worker has.
type workOf struct{ *Lease }

// info is what Trace reports of the lease.
func (l *Lease) info(err error) LeaseInfo {
	return LeaseInfo{l.e.name, l.token, l.Remaining(), err}
}

// Context ends with the lease, at the latest when its time is over by the
// local clock, whatever the store does; its cause is ErrLost or ErrResigned
// with the reason. In Run it ends as soon as the worker shall stop, while the
// lease is still valid. It is advice: right after a pause of the process it
// may not have ended although Check already fails.
func (l *Lease) Context() context.Context { return l.ctx }

// Token returns the lease's fencing token, also when the lease is over.
func (l *Lease) Token() Token { return l.token }

// Check returns nil while the lease is valid, and ErrLost or ErrResigned, which
// are both ErrNotLeader, from then on. Call it before each side effect. It
// reads the clocks, takes no lock, allocates nothing and does not wait for
// anything.
//
// A process that is paused after Check returned can act late: send the token
// along and let the resource refuse.
func (l *Lease) Check() error {
	l.live()
	return l.valid()
}

// live notes a sign of life of the worker, for StallTimeout.
func (l *Lease) live() {
	if l.e.o.StallTimeout > 0 {
		l.checked.Store(int64(l.e.clock.Now().Mono))
	}
}

// Remaining returns how long the lease is valid if it is not renewed, 0 when
// it is over.
func (l *Lease) Remaining() time.Duration {
	if l.valid() != nil {
		return 0
	}
	return max(0, l.hold-clock.Elapsed(l.e.clock, l.status.Load().start))
}

// valid is the holder rule. It does not rely on a timer having fired. The first
// to find the time over ends the lease for everybody: a renewal that is
// answered later cannot bring it back.
func (l *Lease) valid() error {
	for {
		s := l.status.Load()
		if s.phase.over() {
			return s.cause
		}
		if clock.Elapsed(l.e.clock, s.start) < l.hold {
			return nil
		}
		next := *s
		next.phase, next.cause = lost, l.lostBecause(l.expired(s))
		l.replace(s, next)
	}
}

// expired says why a lease's time is over.
func (l *Lease) expired(s *status) error {
	if s.fault != nil {
		return fmt.Errorf("it was not renewed within %v; the last try: %w", l.hold, s.fault)
	}
	return fmt.Errorf("it was not renewed within %v; no renewal has failed, so this process was paused, or StallTimeout kept it from renewing", l.hold)
}

// extend makes the lease valid from start, unless it is over. It returns why it
// is.
func (l *Lease) extend(start clock.Reading) error {
	for {
		if err := l.valid(); err != nil {
			return err
		}
		s := l.status.Load()
		next := *s
		next.start, next.fault = start, nil
		if s.phase.over() || l.replace(s, next) {
			return l.valid()
		}
	}
}

// note keeps the error of a renewal that failed.
func (l *Lease) note(fault error) {
	for {
		s := l.status.Load()
		next := *s
		next.fault = fault
		if s.phase.over() || l.replace(s, next) {
			return
		}
	}
}

// move takes the lease to a later phase, unless it is over, and raises why. The
// first cause counts.
func (l *Lease) move(to phase, why reason, cause error) {
	for {
		s := l.status.Load()
		next := *s
		next.why = max(s.why, why)
		if !s.phase.over() && s.phase < to {
			next.phase = to
			if s.phase != draining || to != resigned { // it drained for the cause that it ends for
				next.cause = cause
			}
		}
		if next.phase == s.phase && next.why == s.why || l.replace(s, next) {
			return
		}
	}
}

// replace is the one place at which a lease moves: first it is as next says,
// then its context ends, and then everybody else is told. It returns false if s
// is not its status any more.
func (l *Lease) replace(s *status, next status) bool {
	if !l.status.CompareAndSwap(s, &next) {
		return false
	}
	switch {
	case next.phase == s.phase:
		return true
	case next.phase == draining:
		l.cancel(next.cause)
		l.later(1, l.e.o.ReleaseTimeout, func() {
			l.move(lost, none, l.lostBecause(fmt.Errorf("the worker did not return within %v of being told to stop (%v)", l.e.o.ReleaseTimeout, errors.Unwrap(next.cause))))
		})
		return true
	}
	l.cancel(next.cause)
	close(l.ended)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, stop := range l.timers {
		if stop != nil {
			stop()
		}
	}
	if l.unwatch != nil {
		l.unwatch()
	}
	return true
}

// drain tells the worker in Run to stop: its context ends, and the lease stays
// valid and renewed so that it can finish its work, but not for longer than
// ReleaseTimeout after it was first told.
func (l *Lease) drain(why reason, cause error) { l.move(draining, why, l.resignedBecause(cause)) }

// giveUp ends the lease unless it is over.
func (l *Lease) giveUp() {
	if l.valid() == nil {
		l.move(resigned, none, l.resignedBecause(nil))
	}
}

// expireLater ends the lease when its time is over, by a timer of its own: it
// depends on no goroutine that may be busy with the store. Renewals do not touch
// the timer; when it fires too early it is set again.
func (l *Lease) expireLater() {
	l.later(0, max(l.Remaining(), time.Microsecond), func() {
		if l.valid() == nil {
			l.expireLater()
		}
	})
}

// later calls f after d unless the lease is over before.
func (l *Lease) later(timer int, d time.Duration, f func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.status.Load().phase.over() {
		l.timers[timer] = l.e.clock.AfterFunc(d, f)
	}
}

func (l *Lease) lostBecause(reason error) error {
	return l.e.fail("lead", fmt.Errorf("%w: %w", ErrLost, reason))
}

func (l *Lease) resignedBecause(reason error) error {
	if reason == nil {
		return l.e.fail("lead", ErrResigned)
	}
	return l.e.fail("lead", fmt.Errorf("%w: %w", ErrResigned, reason))
}

// A proposal is a value to publish.
type proposal struct {
	ctx   context.Context
	value string
	done  chan error // gets one
}

// Proclaim publishes a new value with the record, under the same token, and
// blocks until the store has acknowledged it. When ctx ends first it returns
// the cause, and the value may still be published with a later renewal. A value
// that the store refuses is given up, and the store's error returned. It
// returns ErrLost or ErrResigned when the lease is over, and ErrInvalid for a
// value of more than 4096 bytes, or that is not UTF-8 or has a NUL.
func (l *Lease) Proclaim(ctx context.Context, value string) error {
	err := checkText("Value", value)
	if ctx == nil {
		err = errNilContext
	}
	if err != nil {
		return l.e.fail("proclaim", err)
	}
	l.live()
	p := &proposal{ctx, value, make(chan error, 1)}
	proposals, done := l.proposals, (chan error)(nil)
	for {
		if err := l.valid(); err != nil {
			return err
		}
		select {
		case proposals <- p:
			proposals, done = nil, p.done
		case err := <-done:
			return l.e.fail("proclaim", err)
		case <-l.ended:
		case <-ctx.Done():
			return l.e.fail("proclaim", usersError{context.Cause(ctx)})
		}
	}
}
