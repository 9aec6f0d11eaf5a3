package elector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// An Elector is one candidate in one election. It is safe for use by many
// goroutines, but leads or campaigns once at a time.
type Elector struct {
	name    string
	backend backends.Backend
	store   string // for errors and logs
	pushes  bool   // Watch reports renewals too
	owned   bool   // Close closes the backend
	o       Options
	clock   clock.Clock
	log     *slog.Logger

	life   context.Context // ends with Close
	kill   context.CancelCauseFunc
	active sync.WaitGroup // of calls and goroutines that Close waits for

	unanswered atomic.Int32 // requests given up that have not returned

	current atomic.Pointer[Lease] // the latest lease, whether it is over or not

	// mutex guards what follows, and is never held across I/O or a callback.
	mutex     sync.Mutex
	closed    bool
	closing   chan struct{} // closed when Close is done
	closeErr  error
	busy      bool // a call of Campaign, TryCampaign or Run is under way
	running   bool // that of Run
	sighting  sighting
	roundTrip time.Duration // of reads, see timed
	reads     int           // that were timed
	wrote     time.Duration // monotonic, when the last write was sent; 0 if none was
}

// Open connects to the store that url names and returns a candidate for the
// named election there. The backend's package must be imported, for its side
// effect of registering the URL's scheme.
//
// Open blocks until the store has answered, for 10 s or RequestTimeout at most if
// that is more, besides what the backend takes to connect, or until ctx ends. It
// does not campaign.
// It returns ErrURL, ErrUnknownScheme, ErrName, ErrInvalid, ErrUnavailable,
// ErrDenied, ErrMisconfigured, ErrReadOnly or ErrForeignRecord.
//
// To run many elections over one connection, open the backend once and use
// New.
func Open(ctx context.Context, url, name string, o *Options) (*Elector, error) {
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

// patience is the least that the first read has, which may have to connect, on
// a machine that starts many things at once.
const patience = 10 * time.Second

// reach reads the record, to see that this can be done.
func (e *Elector) reach(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return e.fail("open", err)
	}
	defer e.active.Done()
	_, err := e.load(ctx, max(e.o.RequestTimeout, patience))
	return e.fail("open", err)
}

// New returns a candidate for the named election on a backend, which may be
// shared by many Electors: they share its connections, and the leases that they
// hold renew together where the store takes many renewals in one request.
// Closing the Elector leaves the backend open. New does no I/O. It returns
// ErrName or ErrInvalid.
func New(backend backends.Backend, name string, o *Options) (*Elector, error) {
	d := backend.Describe()
	options, err := o.resolved(d)
	if err == nil {
		err = backends.CheckName(name)
	}
	if err != nil {
		return nil, &Error{"open", name, d.Store, err}
	}
	e := &Elector{name: name, backend: backend, store: d.Store, pushes: d.PushesRenewals, o: options, clock: options.clock}
	e.log = slog.New(guarded{options.Logger.Handler()}).With("election", name, "store", d.Store, "id", options.ID)
	e.life, e.kill = context.WithCancelCause(context.Background())
	e.closing = make(chan struct{})
	return e, nil
}

// Name returns the name of the election.
func (e *Elector) Name() string { return e.name }

// ID returns the name of this candidate: Options.ID or its default.
func (e *Elector) ID() string { return e.o.ID }

// Token returns the fencing token of the lease now held, or ErrNotLeader. It
// asks the clocks and not the store, like Lease.Check, but is no sign of life
// for Options.StallTimeout.
func (e *Elector) Token() (Token, error) {
	l := e.current.Load()
	if l == nil {
		return 0, e.fail("token", ErrNotLeader)
	}
	if err := l.valid(); err != nil {
		return 0, err
	}
	return l.token, nil
}

// Resign gives up the lease now held: see Lease.Resign. It returns
// ErrNotLeader if there is none, and tries again if the last one was resigned
// and the store could not be told.
//
// During Run it does what the end of Run's context does: the worker is told to
// stop, the store is told when it has returned, and Run returns. Resign waits
// for that until ctx ends. If the lease is lost meanwhile, both return ErrLost.
func (e *Elector) Resign(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return e.fail("resign", err)
	}
	defer e.active.Done()
	l := e.current.Load()
	if l == nil || l.told() {
		return e.fail("resign", ErrNotLeader)
	}
	if l.cedes {
		l.asked.Store(true)
		l.cede(l.resigned(nil))
		select {
		case <-l.kept:
			return e.fail("resign", l.farewell())
		case <-ctx.Done():
			return e.fail("resign", context.Cause(ctx))
		}
	}
	return l.Resign(ctx)
}

// A Leader is what an election's record says of who leads.
type Leader struct {
	ID    string // of the leader, or the last one; empty when it resigned
	Token Token  // of its acquisition; 0 if nobody ever led
	Value string // what it published

	// Lapsed says that the leader has not renewed for TTL*(1+ClockDrift): its
	// lease is over although it did not resign, and nobody has taken over
	// yet.
	Lapsed bool
}

// Vacant reports whether nobody leads: nobody ever did, the leader resigned,
// or its lease lapsed.
func (l Leader) Vacant() bool { return l.ID == "" || l.Lapsed }

// Leader reads the record once and returns who leads. An answer is out of date
// as soon as it is given: it is for people and for routing, never a reason to
// write. It blocks for at most RequestTimeout, or three times that while changes
// overtake its reads.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	if err := e.begin(); err != nil {
		return Leader{}, e.fail("read", err)
	}
	defer e.active.Done()
	r, err := e.load(ctx, e.o.RequestTimeout)
	if err != nil {
		return Leader{}, e.fail("read", err)
	}
	return e.leader(r), nil
}

// leader is the Leader that a record just seen tells of.
func (e *Elector) leader(r backends.Record) Leader {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	l := Leader{ID: r.Holder, Token: Token(r.Token), Value: r.Value}
	if !r.Vacant() && r.Version == e.sighting.record.Version {
		l.Lapsed = e.clock.Now().Mono >= e.sighting.since+e.o.challenge(r.TTL)
	}
	return l
}

// Close resigns if this process leads, ends campaigns and observers, and
// closes the connection to the store if Open made it. A worker in Run is told
// to stop and waited for, as at the end of Run's context; so Close must not be
// called by the worker itself.
//
// Close blocks until all that is done, at most twice ReleaseTimeout and a
// little more. Any number of calls, also at the same time, wait for the same
// end and return the same error. Later calls of methods that ask the store
// return ErrClosed.
func (e *Elector) Close() error {
	e.mutex.Lock()
	first, busy := !e.closed, e.busy
	e.closed = true
	e.mutex.Unlock()
	if !first {
		<-e.closing
		return e.closeErr
	}
	e.kill(ErrClosed)
	patience := 2*e.o.ReleaseTimeout + 4*e.o.RequestTimeout
	ctx, cancel := e.clock.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	if l := e.current.Load(); l != nil && !busy {
		// ErrClosed: a release failed before, and is not tried once more.
		err := l.Resign(ctx)
		if err != nil && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrClosed) {
			errs = append(errs, err)
		}
	}
	idle := make(chan struct{})
	go func() { e.active.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("a worker, a callback or a request to the store has not returned within %v", patience))
	}
	if e.owned {
		errs = append(errs, e.backend.Close())
	}
	e.closeErr = e.fail("close", errors.Join(errs...))
	close(e.closing)
	return e.closeErr
}

// begin counts a call in, so that Close waits for it; or returns ErrClosed.
// The caller says e.active.Done at its end.
func (e *Elector) begin() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.active.Add(1)
	return nil
}

// fail names election and store in an error, once. It returns nil for nil.
func (e *Elector) fail(op string, err error) error {
	var named *Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &Error{op, e.name, e.store, err}
}

// joined returns a context that ends with ctx and with the Elector.
func (e *Elector) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// after returns a channel that is closed after d of this machine's monotonic
// clock.
func (e *Elector) after(d time.Duration) (<-chan struct{}, func() bool) {
	c := make(chan struct{})
	return c, e.clock.AfterFunc(d, func() { close(c) })
}
