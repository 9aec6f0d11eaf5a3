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
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// A Lease is this process's hold on an election. It is valid for
// TTL*(1-ClockDrift), counted from before its last acknowledged request was
// sent (Gray and Cheriton, "Leases", 1989). A lease that is over never becomes
// valid again. Many goroutines may call its methods.
//
// How a lease of Run ends (see release.go for when the record is released):
//
//	held ──ctx, Healthy, a request,
//	       Resign, Close────────────────▶ draining ──the worker returned──▶ resigned
//	held, draining ──Lease.Release, the worker returned───────────────────▶ resigned
//	held, draining ──expiry, a record that is not its own, foreign or edited,
//	                 panic or Goexit──────────────────────────────────────▶ lost
//	draining ──ReleaseTimeout─────────────────────────────────────────────▶ overran
//	held, draining ──mark of presence removed─────────────────────────────▶ deposed
//
// A lease of Campaign drains only after a request to resign, until its user calls
// Release; Healthy and Close release it.
type Lease struct {
	e     *Elector
	token Token
	won   backends.Record // the state that acquired
	hold  time.Duration
	inRun bool // Run, or a group, ends the lease once the worker has returned

	ctx    context.Context
	cancel context.CancelCauseFunc

	status  atomic.Pointer[status]
	ended   chan struct{} // closed when the lease is over
	idle    chan struct{} // closed when it writes no more
	checked atomic.Int64  // monotonic, when Check was last called
	release release
	upkeep
	alarms
}

// An upkeep is what the renewals of a lease need.
type upkeep struct {
	turn      turn // of maintain
	proposals chan *proposal
	place     *store.Place    // among those that renew
	lasting   context.Context // as that of the lease, and does not end
	unwatch   func()          // ends the watch of the mark of presence; nil if there is none

	// Owned by the goroutine that maintains the lease, then by the one that writes
	// the release: see begin.
	own      *acquisition
	value    string        // to write with the next renewal
	next     time.Duration // when that is due, monotonic
	pending  *proposal     // that it is for
	faults   *backoff
	finished bool

	fault atomic.Pointer[error] // of the last renewal, unless that has worked
}

// Alarms are what the end of a lease stops.
type alarms struct {
	mutex  sync.Mutex
	timers [3]func() bool // stop them
}

// The timers of a lease.
const (
	expiring    = iota // at the end of the term
	overrunning        // at the end of draining
	renewing           // when the next renewal is due
)

// A phase is where a lease is in its life.
type phase uint8

const (
	held phase = iota
	draining
	resigned
	lost
	overran // lost, because the worker took too long to stop
	deposed
)

// over reports whether the lease has ended, for good.
func (p phase) over() bool { return p >= resigned }

// A reason is why the worker was told to stop. It only grows, even after the end
// of the lease, and decides what Run then does.
type reason uint8

const (
	none      reason = iota
	unhealthy        // Run campaigns again
	requested        // the same, once another candidate has led: see RequestResign
	stop             // Run returns: ctx ended, or Resign, Release or Close was called
)

// A status is all that changes in the life of a lease. It is immutable and
// replaced as a whole.
type status struct {
	phase phase
	why   reason
	start clock.Reading // t0: the lease is valid for H from here
	cause error         // of the phase: the worker's context has it
}

// workOf is the key of a value that the context of a lease's worker has.
type workOf struct{ *Lease }

// info is what Trace reports of the lease.
func (l *Lease) info(err error) LeaseInfo {
	return LeaseInfo{Election: l.e.name, Store: l.e.store, Token: l.token, Validity: l.hold, Remaining: l.Remaining(), Err: err, Lease: l}
}

// Context returns a context that ends with the lease, at the latest when the
// lease expires by the local clock, whatever the store does. Its cause is ErrLost
// or ErrResigned with the reason. In Run it ends as soon as the worker must stop,
// while the lease is still valid. After a request to resign it ends with the cause
// ErrRequested, without Run too: the lease then stays valid and renewed for at most
// ReleaseTimeout, so that its user can end the work and call Release. Treat it as
// advice: right after a pause of the process it may not have ended although Check
// already fails.
func (l *Lease) Context() context.Context { return l.ctx }

// Token returns the lease's fencing token, even after the end of the lease.
func (l *Lease) Token() Token { return l.token }

// Lossy returns why the store may lose acknowledged writes, for people, or "" if it keeps
// them. On such a store two leases can be valid at once, and guards refuse.
func (l *Lease) Lossy() string { return l.e.lossy }

// Election returns the name of the election.
func (l *Lease) Election() string { return l.e.name }

// Acquisition implements [backends.Lease], for the guards of the backends. It
// counts as a call of Check.
func (l *Lease) Acquisition() (backends.Acquisition, error) {
	for {
		if err := l.Check(); err != nil {
			return backends.Acquisition{}, err
		}
		if left := l.Remaining(); left > 0 {
			return backends.Acquisition{Backend: l.e.backend, Election: l.e.name, Record: l.won, Remaining: left}, nil
		}
	}
}

// CheckFor is Check for work that takes d: it returns ErrUnavailable if the lease
// ends before that unless it is renewed, and ErrInvalid if d is longer than any
// lease is valid without a renewal. Like Check it never waits.
func (l *Lease) CheckFor(d time.Duration) error {
	if err := l.Check(); err != nil {
		return err
	}
	left := l.Remaining()
	switch err := l.valid(); {
	case left >= d:
		return nil
	case err != nil:
		return err
	case d > l.hold:
		return l.e.fail("check", fmt.Errorf("%w: a lease is valid for %v without a renewal, and the work takes %v; raise Options.TTL, or divide the work", ErrInvalid, l.hold, d))
	}
	return l.e.fail("check", fmt.Errorf("%w: without a renewal the lease is valid for %v, and the work takes %v", ErrUnavailable, left, d))
}

// Check returns nil while the lease is valid, and ErrLost or ErrResigned, which
// are both ErrNotLeader, from then on. Call it before each side effect. It
// reads the clocks, takes no lock, allocates nothing and never waits.
//
// A process that pauses after Check can act late: send the token with the write,
// and let the resource refuse it.
func (l *Lease) Check() error {
	l.live()
	return l.valid()
}

// live records a sign of life of the worker, for StallTimeout.
func (l *Lease) live() { l.liveFor(0) }

// liveFor is live, and StallTimeout begins only later.
func (l *Lease) liveFor(d time.Duration) {
	if l.e.o.StallTimeout > 0 {
		l.checked.Store(int64(l.e.clock.Now().Mono + d))
	}
}

// Remaining returns how long the lease stays valid without another renewal, 0
// after its end.
func (l *Lease) Remaining() time.Duration {
	if l.valid() != nil {
		return 0
	}
	return max(0, l.hold-clock.Elapsed(l.e.clock, l.status.Load().start))
}

// valid is the holder rule. It does not rely on a timer. The first caller that
// finds the lease expired ends it for all: a renewal that is answered later
// cannot bring it back.
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
		next.phase, next.cause = lost, l.lostBecause(l.expired())
		l.replace(s, &next)
	}
}

// expired returns why a lease has expired.
func (l *Lease) expired() error {
	if fault := l.fault.Load(); fault != nil {
		return fmt.Errorf("it was not renewed within %v; the last try: %w", l.hold, *fault)
	}
	return fmt.Errorf("it was not renewed within %v; no renewal has failed, so this process was paused, or StallTimeout kept it from renewing", l.hold)
}

// extend makes the lease valid from start. If the lease is over, extend returns
// why.
func (l *Lease) extend(start clock.Reading) error {
	l.change(func(next *status) bool {
		next.start = start
		return l.valid() == nil
	})
	return l.valid()
}

// move takes the lease to a later phase, unless it is over, and raises why. The
// first cause stays.
func (l *Lease) move(to phase, why reason, cause error) {
	l.change(func(next *status) bool {
		s := *next
		next.why = max(s.why, why)
		if !s.phase.over() && s.phase < to {
			next.phase = to
			if s.phase != draining || to != resigned { // the cause of draining is that of the end
				next.cause = cause
			}
		}
		return next.phase != s.phase || next.why != s.why
	})
}

// change replaces the status by what f makes of it, unless f returns false.
func (l *Lease) change(f func(next *status) bool) {
	for {
		s := l.status.Load()
		next := *s
		if !f(&next) || l.replace(s, &next) {
			return
		}
	}
}

// replace is the one place where a lease moves: first its status is next, then its
// context ends, and then everything else learns of it. It returns false if s is no
// longer the status.
func (l *Lease) replace(s, next *status) bool {
	if !l.take(s, next) {
		return false
	}
	switch {
	case next.phase == s.phase:
		return true
	case next.phase == draining:
		l.cancel(next.cause)
		l.later(overrunning, l.e.o.ReleaseTimeout, func() {
			slow := "the worker did not return within %v of being told to stop (%v)"
			if !l.inRun {
				slow = "Release was not called within %v of the end of the context (%v)"
			}
			l.move(overran, none, l.lostBecause(fmt.Errorf(slow, l.e.o.ReleaseTimeout, errors.Unwrap(next.cause))))
		})
		return true
	}
	l.cancel(next.cause)
	close(l.ended)
	l.turn.ask()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, stop := range l.timers {
		if stop != nil {
			stop()
		}
	}
	return true
}

// take replaces the status. For the specification that is a step.
func (l *Lease) take(s, next *status) bool {
	name := ""
	switch {
	case next.phase != s.phase:
		name = [...]string{draining: "drain", resigned: "resign", lost: "lose", overran: "overrun", deposed: "depose"}[next.phase]
	case next.start != s.start:
		name = "extend"
	default:
		return l.status.CompareAndSwap(s, next)
	}
	return l.e.view.Take(l.step(name, next.start), func() bool { return l.status.CompareAndSwap(s, next) })
}

// step returns a step of the lease, which counts from start.
func (l *Lease) step(name string, start clock.Reading) rule.Step {
	return rule.Step{Name: name, Nonce: l.won.Attempt.Nonce, Until: start.Mono + l.hold}
}

// drain tells the worker to stop: its context ends, and the lease stays
// valid and renewed so that the worker can finish, for at most ReleaseTimeout
// after it was first told.
func (l *Lease) drain(why reason, cause error) { l.move(draining, why, l.resignedBecause(cause)) }

// giveUp ends the lease unless it is over.
func (l *Lease) giveUp() {
	if l.valid() == nil {
		l.move(resigned, none, l.resignedBecause(nil))
	}
}

// expireLater ends the lease when it expires, by a timer of its own, so that no
// goroutine that is busy with the store delays it. Renewals do not touch the
// timer; when it fires too early it is set again.
func (l *Lease) expireLater() {
	l.later(expiring, max(l.Remaining(), time.Microsecond), func() {
		if l.valid() == nil {
			l.expireLater()
		}
	})
}

// later calls f after d, unless the lease ends before, or later is called again for this timer.
func (l *Lease) later(timer int, d time.Duration, f func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.status.Load().phase.over() {
		return
	}
	if stop := l.timers[timer]; stop != nil {
		stop()
	}
	l.timers[timer] = l.e.clock.AfterFunc(d, f)
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

// A proposal is a value to publish with the record.
type proposal struct {
	ctx   context.Context
	value string
	done  chan error // gets one
}

// Proclaim publishes a new value with the record, under the same token, and
// blocks until the store has acknowledged it. If ctx ends first, Proclaim returns
// the cause, and a later renewal may still publish the value; called again, Proclaim
// then returns nil at once. If the store
// refuses the value, Proclaim returns the store's error at once, and the old value stays.
// It returns ErrLost or ErrResigned after the end of the lease, and ErrInvalid
// for a value that has more than 4096 bytes, is not UTF-8 or contains a NUL.
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
			l.turn.ask()
		case err := <-done:
			return l.e.fail("proclaim", err)
		case <-l.ended:
		case <-ctx.Done():
			return l.e.fail("proclaim", usersError{context.Cause(ctx)})
		}
	}
}
