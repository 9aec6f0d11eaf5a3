package elector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/seats"
	"github.com/elector-go/elector/internal/store"
)

// An Elector is one candidate in one election. Open and New make it. Many
// goroutines may use it at the same time; it leads or campaigns once at a time.
type Elector struct {
	site
	calls
	reports
	courtesy
	candidature

	o        Options
	clock    clock.Clock
	draw     func() uint64 // a random number
	requests *store.Client
	view     rule.View
	timing   timing
	current  atomic.Pointer[Lease] // the latest lease, valid or over
}

// A site is the election and the store that keeps it.
type site struct {
	name    string
	backend backends.Backend
	store   string // for errors and logs
	pushes  bool   // Watch reports renewals too
	lossy   string // why the store may lose acknowledged writes; empty if it keeps them
	listens bool   // Watch reports vacancies
	owned   bool   // Close closes the backend
	seat    bool   // the election is a seat of a group: see rule.Replaced
	refusal error  // of writes, if the backend was opened for reading alone
}

// Open connects to the store that url names and returns a candidate for the
// named election there. The backend's package must be imported, for its side
// effect of registering the URL's scheme.
//
// Open does not campaign. It blocks until the backend has connected and the store
// has answered, or until ctx ends; the store has 10 s to answer, or
// RequestTimeout if that is longer. Open returns ErrURL, ErrUnknownScheme, ErrName,
// ErrInvalid, ErrUnavailable, ErrDenied, ErrMisconfigured, ErrReadOnly or
// ErrForeignRecord, and tries nothing again.
//
// To run many elections over one connection, open the backend once and call
// New for each.
func Open(ctx context.Context, url, name string, o *Options) (*Elector, error) {
	if ctx == nil {
		return nil, &Error{Op: "open", Election: name, Err: errNilContext}
	}
	if err := backends.CheckName(name); err != nil {
		return nil, &Error{Op: "open", Election: name, Err: err}
	}
	backend, err := backends.Open(ctx, url)
	if err != nil {
		return nil, &Error{Op: "open", Election: name, Err: err}
	}
	e, err := New(backend, name, o)
	if err == nil {
		e.owned = true
		err = e.reach(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	return e, nil
}

// patience is the least time that the first read has. That read may have to
// connect, on a machine that is starting many things at once.
const patience = 10 * time.Second

// reach reads the record, to see whether that works.
func (e *Elector) reach(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return e.fail("open", err)
	}
	defer e.active.Done()
	e.opened = e.now()
	a := e.asks(loading, store.Look).within(max(e.o.RequestTimeout, patience))
	a.Timeout = a.limit
	_, f := e.load(ctx, a.alone())
	return e.fail("open", f.shown())
}

// New returns a candidate for the named election on a backend. Many Electors may
// share one backend: they then share its connections, and their leases renew
// together, and their waiters and observers read together, where the store takes
// many renewals, or many names, in one request. Closing the
// Elector leaves the backend open. New does no I/O. It returns ErrName or
// ErrInvalid.
func New(backend backends.Backend, name string, o *Options) (*Elector, error) {
	if backend == nil {
		return nil, &Error{Op: "open", Election: name, Err: fmt.Errorf("%w: the backend is nil", ErrInvalid)}
	}
	seat, isSeat := backend.(seats.Backend)
	if isSeat {
		backend = seat.Backend
	}
	m := inject.Of(backend)
	backend = m.Backend
	d := backend.Describe()
	options, err := o.resolved(d, m.Random)
	if err == nil {
		err = backends.CheckName(name)
	}
	if err != nil {
		return nil, &Error{"open", name, d.Store, err}
	}
	e := &Elector{o: options, clock: m.Clock, draw: m.Random}
	e.site = site{name: name, backend: backend, store: d.Store, lossy: d.Lossy, pushes: d.PushesRenewals, refusal: d.Writable(), seat: isSeat}
	e.requests = store.New(backend, e.clock, &e.active)
	e.listens = e.requests.Watches()
	e.pushes = e.pushes && e.listens
	e.view.Drift, e.view.Report = options.ClockDrift, m.Report
	if s, ok := backend.(backends.SameWriter); ok {
		e.view.SameWrite = s.SameWrite
	}
	e.priority.Store(int64(options.Priority))
	e.storeLog = slog.New(aside.Handler(options.Logger.Handler(), options.patience())).With("store", d.Store)
	e.log = e.storeLog.With("election", name, "id", options.ID)
	e.callbacks = aside.Callbacks(e.log, options.patience())
	e.life, e.kill = context.WithCancel(context.Background())
	e.closing = make(chan struct{})
	if isSeat {
		seat.Bind(e.parts())
	}
	return e, nil
}

// parts returns what package partition uses of an Elector that acquires a seat.
func (e *Elector) parts() seats.Parts {
	return seats.Parts{
		View: &e.view, TTL: e.o.TTL, RenewEvery: e.o.RenewEvery, RequestTimeout: e.o.RequestTimeout, ReleaseTimeout: e.o.ReleaseTimeout, Logger: e.o.Logger,
		Ended: func() <-chan struct{} { return e.current.Load().ended },
		Abandon: func(cause error) {
			l := e.current.Load()
			l.writeRelease(workPanicked)
			l.move(lost, none, l.lostBecause(cause))
		},
	}
}

// Name returns the name of the election.
func (e *Elector) Name() string { return e.name }

// ID returns the name of this candidate: Options.ID or its default.
func (e *Elector) ID() string { return e.o.ID }

// FailoverTime returns for about how long, at most, an election whose candidates have this
// Elector's options is without a leader after one has crashed and while the store answers:
// TTL*(1+ClockDrift), and RenewEvery, because a store that is only polled shows the last
// renewal that much later. A preferred candidate that is dead too may cost RenewEvery more. It
// is for time-outs of what waits for a leader.
func (e *Elector) FailoverTime() time.Duration {
	return rule.Challenge(e.o.TTL, e.o.ClockDrift) + e.o.RenewEvery
}

// Token returns the fencing token of the lease that this Elector holds, or
// ErrNotLeader. Like Lease.Check it reads the clocks and not the store; unlike
// Check it does not count as a sign of life for Options.StallTimeout.
func (e *Elector) Token() (Token, error) {
	l, err := e.Lease()
	if err != nil {
		return 0, err
	}
	return l.token, nil
}

// Lease returns the lease that this Elector holds, for code that does not run in the
// worker, such as an HTTP handler; or ErrNotLeader. The lease may end at any time: call
// its Check before each side effect. Lease reads the clocks and not the store, and does
// not count as a sign of life for Options.StallTimeout. In Run the lease is there
// before the worker is called: with Options.Standby by up to ReleaseTimeout.
func (e *Elector) Lease() (*Lease, error) {
	l := e.current.Load()
	if l == nil {
		return nil, e.fail("lease", ErrNotLeader)
	}
	if err := l.valid(); err != nil {
		return nil, err
	}
	return l, nil
}

// Resign gives up the lease that this Elector holds, as Lease.Release does. It returns
// ErrNotLeader if there is no lease. If the last lease was resigned but its
// release could not be written, Resign returns why.
//
// During Run, Resign does what the end of Run's context does: the worker is told
// to stop, the release is written once the worker has returned, and Run returns.
// Resign waits for that until ctx ends. If the lease is lost meanwhile, Resign
// and Run return ErrLost. The worker itself may call Resign with its own context,
// or one derived from it: Resign then returns nil at once and does not wait for
// its caller. With another context the worker would wait for itself, for
// ReleaseTimeout, and lose the lease.
func (e *Elector) Resign(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return e.fail("resign", err)
	}
	defer e.active.Done()
	l := e.current.Load()
	if l == nil || l.valid() != nil && l.released() {
		return e.fail("resign", ErrNotLeader)
	}
	if l.inRun && l.valid() == nil {
		l.drain(stop, nil)
		if ctx.Value(workOf{l}) != nil {
			return nil
		}
		return e.fail("resign", l.waitReleased(ctx))
	}
	return l.Release(ctx)
}

// Close resigns if this process leads, ends campaigns and observers, and closes
// the connection to the store if Open made it. Close tells a worker in Run to
// stop and waits for it, as at the end of Run's context; so the worker itself
// must not call Close.
//
// Close waits for Trace callbacks and for the log, for a second each. It blocks until all
// that is done. If a worker or a request does not return
// within 2*ReleaseTimeout + 4*RequestTimeout, Close does not wait for it
// and returns an error that says so. Closing the connection then takes what the
// backend's Close takes. Further calls wait for the first one and return the same
// error. After Close, methods that ask the store return ErrClosed.
func (e *Elector) Close() error {
	if e.backend == nil {
		return errNoElector
	}
	e.mutex.Lock()
	first, busy := !e.closed, e.busy
	e.closed = true
	e.mutex.Unlock()
	if !first {
		<-e.closing
		return e.closeErr
	}
	e.kill()
	patience := 2*e.o.ReleaseTimeout + 4*e.o.RequestTimeout
	ctx, cancel := e.clock.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	if l := e.current.Load(); l != nil && !busy && l.valid() == nil {
		errs = append(errs, l.Release(ctx))
	}
	idle := make(chan struct{})
	go func() { e.active.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("a worker or a request to the store has not returned within %v", patience))
	}
	e.callbacks.Flush(flushes)
	aside.Flush(e.log, flushes)
	if e.owned {
		errs = append(errs, e.backend.Close())
	}
	e.closeErr = e.fail("close", errors.Join(errs...))
	close(e.closing)
	return e.closeErr
}
