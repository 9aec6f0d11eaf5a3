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
type Lease struct {
	e     *Elector
	token Token
	nonce string
	hold  time.Duration
	cedes bool        // Run ends it once the worker has returned, see cede
	sick  atomic.Bool // it was ceded because of Healthy
	asked atomic.Bool // it was ceded because of Elector.Resign

	ctx    context.Context
	cancel context.CancelCauseFunc

	term    atomic.Pointer[term]
	ended   chan struct{} // closed when the lease is over
	kept    chan struct{} // closed when its goroutine has ended
	checked atomic.Int64  // monotonic, when Check was last called

	proposals chan *proposal
	batches   *batches // of the backend's leases; nil if it makes none

	// Owned by the goroutine that keeps the lease.
	record backends.Record          // as the store last showed it, ours
	value  string                   // to write with the next renewal
	number uint64                   // of our latest write
	alone  bool                     // the next renewal goes by itself, see sender
	sent   map[uint64]clock.Reading // when each write that may count was sent

	mutex      sync.Mutex
	unwatch    func()        // ends the watch of the mark of presence
	expiry     func() bool   // stops the timer at the end of the term
	patience   func() bool   // stops the timer that cede set
	released   chan struct{} // closed when a release has been tried
	releaseErr error

	down sync.Once // see stepDown
}

// A term is a stretch of time for which the lease is valid, or its end.
type term struct {
	start clock.Reading // t0
	over  error         // why the lease is over; nil while it is not
}

// newLease starts to keep a record that an acknowledged write, or a read-back,
// has shown to be ours. base gives the lease's context its values.
func (e *Elector) newLease(base context.Context, r backends.Record, sent map[uint64]clock.Reading) *Lease {
	l := &Lease{
		e: e, token: Token(r.Token), nonce: r.Attempt.Nonce, hold: e.o.hold(), cedes: e.running,
		ended: make(chan struct{}), kept: make(chan struct{}), released: make(chan struct{}),
		proposals: make(chan *proposal), batches: batchesOf(e.backend),
		record: r, value: r.Value, sent: sent,
	}
	for number := range sent {
		l.number = max(l.number, number)
	}
	start := sent[r.Attempt.Sequence]
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(base))
	l.term.Store(&term{start: start})
	l.checked.Store(int64(start.Mono))
	e.current.Store(l)
	l.expireLater()
	e.log.Info("elector: leads", "token", l.token)
	e.traceAcquired(l.token) // before anything renews the lease: it may block
	e.active.Add(1)
	go l.keep()
	if w, ok := e.backend.(backends.PresenceWatcher); ok {
		l.watchPresence(w, r)
	}
	return l
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
	return max(0, l.hold-clock.Elapsed(l.e.clock, l.term.Load().start))
}

// valid is the holder rule. It does not rely on a timer having fired. Whoever
// first finds the time over ends the lease for everybody: a renewal that is
// answered later cannot bring it back.
func (l *Lease) valid() error {
	for {
		t := l.term.Load()
		if t.over != nil {
			return t.over
		}
		if clock.Elapsed(l.e.clock, t.start) < l.hold {
			return nil
		}
		l.replace(t, l.lostBecause(fmt.Errorf("it was not renewed within %v; see the log for what the store answered, and compare with how long the process may have been paused", l.hold)))
	}
}

// extend makes the lease valid from start, unless it is over.
func (l *Lease) extend(start clock.Reading) error {
	for {
		if err := l.valid(); err != nil {
			return err
		}
		t := l.term.Load()
		if t.over == nil && l.term.CompareAndSwap(t, &term{start: start}) {
			return l.valid()
		}
	}
}

// end makes the lease invalid, for the first cause given.
func (l *Lease) end(cause error) {
	for {
		t := l.term.Load()
		if t.over != nil || l.replace(t, cause) {
			return
		}
	}
}

// replace ends the lease if t is still its term: first it is not valid, then
// its context ends, and then everybody else is told.
func (l *Lease) replace(t *term, cause error) bool {
	if !l.term.CompareAndSwap(t, &term{over: cause}) {
		return false
	}
	l.cancel(cause)
	close(l.ended)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, stop := range []func() bool{l.expiry, l.patience} {
		if stop != nil {
			stop()
		}
	}
	if l.unwatch != nil {
		l.unwatch()
	}
	return true
}

// expireLater ends the lease when its time is over, by a timer of its own: no
// goroutine that may be busy with the store is asked. Renewals do not touch
// the timer; when it fires too early it is set again.
func (l *Lease) expireLater() {
	l.later(&l.expiry, max(l.Remaining(), time.Microsecond), func() {
		if l.valid() == nil {
			l.expireLater()
		}
	})
}

// later calls f after d unless the lease is over before. How to stop the timer
// is kept in stop.
func (l *Lease) later(stop *func() bool, d time.Duration, f func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.term.Load().over != nil {
		return
	}
	*stop = l.e.clock.AfterFunc(d, f)
}

func (l *Lease) lostBecause(reason error) error {
	return l.e.fail("lead", fmt.Errorf("%w: %w", ErrLost, reason))
}

func (l *Lease) resigned(reason error) error {
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
	if err := checkText("Value", value); err != nil {
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
			return l.e.fail("proclaim", context.Cause(ctx))
		}
	}
}

// Resign ends the lease: it is no longer valid, its context ends, and then the
// store is told, so that a successor need not wait for the TTL. Resign blocks
// until the store has acknowledged that, at most ReleaseTimeout and what a
// renewal under way takes. When ctx ends
// first it returns the cause and the store is told all the same; Close waits
// for it.
//
// If the store could not be told, Resign returns why. This process does not
// lead then either, the record expires after TTL*(1+ClockDrift) of a
// challenger's clock, and Resign may be called again. A release never touches
// a successor's record. On a lease that was lost Resign returns ErrLost.
func (l *Lease) Resign(ctx context.Context) error {
	if over := l.giveUp(); !errors.Is(over, ErrResigned) {
		return over
	}
	tried, err := l.release()
	if err != nil {
		return l.e.fail("resign", err)
	}
	select {
	case <-tried:
		l.mutex.Lock()
		defer l.mutex.Unlock()
		return l.e.fail("resign", l.releaseErr)
	case <-ctx.Done():
		return l.e.fail("resign", context.Cause(ctx))
	}
}

// giveUp ends the lease unless it is over, and returns why it is.
func (l *Lease) giveUp() error {
	if l.valid() == nil {
		l.end(l.resigned(nil))
	}
	return l.term.Load().over
}

// farewell returns why a lease whose goroutine has ended was lost, or why the
// store could not be told that it was resigned.
func (l *Lease) farewell() error {
	if over := l.term.Load().over; !errors.Is(over, ErrResigned) {
		return over
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.releaseErr
}

// told reports whether nothing is left to tell the store: the lease was lost,
// or the store knows that it was resigned.
func (l *Lease) told() bool {
	if l.valid() == nil {
		return false
	}
	if !errors.Is(l.term.Load().over, ErrResigned) {
		return true
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.released:
		return l.releaseErr == nil
	default:
		return false
	}
}

// release returns a channel that is closed when the store has been told, or
// could not be. The lease's own goroutine tries first; another call starts
// another try.
func (l *Lease) release() (<-chan struct{}, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.released:
		if l.releaseErr == nil {
			return l.released, nil
		}
	default:
		return l.released, nil
	}
	if err := l.e.begin(); err != nil {
		return nil, err
	}
	l.released = make(chan struct{})
	go func() {
		defer l.e.active.Done()
		l.vacate()
	}()
	return l.released, nil
}

// cede tells the worker in Run to stop: its context ends, the lease stays
// valid and renewed so that it can finish what it is at, but not for longer
// than ReleaseTimeout. A worker that has not returned by then has a lost lease,
// and the store is not told: its record expires.
func (l *Lease) cede(cause error) {
	l.cancel(cause)
	l.mutex.Lock()
	again := l.patience != nil
	l.mutex.Unlock()
	if again {
		return
	}
	l.later(&l.patience, l.e.o.ReleaseTimeout, func() {
		// The cause is not wrapped: it is a resignation, of which the store is told.
		l.end(l.lostBecause(fmt.Errorf("the worker did not return within %v of being told to stop (%v)", l.e.o.ReleaseTimeout, cause)))
	})
}
