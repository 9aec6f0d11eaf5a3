// Package partition shares a fixed number of partitions among the processes of a group:
// one owner of each at any instant, evenly, with a fencing token for each, at the cost of
// one lease for each process.
//
//	g, err := partition.Join(ctx, os.Getenv("ELECTOR_URL"), "orders", &partition.Options{Partitions: 64})
//	...
//	err = g.Run(ctx, func(ctx context.Context, lease *partition.Lease) error {
//		return sendOrders(ctx, lease) // lease.Check() before each side effect, lease.Token() with it
//	})
//
// Run calls the function once for each partition that this process owns, each time on a
// goroutine of its own. When a process comes, leaves or crashes, the others share its
// partitions, with the fewest moves.
//
// What a lease promises and what it cannot is as in package elector: a process that
// pauses after Check can act late, and only the resource can refuse that, by the token or
// by a guard of the store.
//
// docs/design-partitions.md has the records, the rules, and why they are safe.
package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

const (
	// MaxPartitions is the largest number of partitions of a group.
	MaxPartitions = 1 << 17

	maxWeight = 1000
	maxSeats  = 10000
)

// Options are the settings of a process in a group.
type Options struct {
	// Partitions is the number of partitions: the same in all processes, from 1 to
	// MaxPartitions. A process that only looks, by Owner, Owners, Members and Observe, may
	// leave it 0, for the number that the group has; Run returns ErrInvalid then.
	Partitions int

	// Weight is this process's share compared to that of others, from 1 to 1000. The
	// default 0 means 1.
	Weight int

	// Settle is how long a change of members waits for others, so that a deploy moves
	// each partition once. Longer waits move less, and let partitions of a process that
	// has ended wait for longer. The default 0 means one renewal interval. A crash has
	// already been waited for: it does not wait for Settle.
	Settle time.Duration

	// Trace has callbacks for metrics and tests. Default none. Elector.Trace is for this
	// process's seat, which is an election.
	Trace *Trace

	// Elector are the settings of this process's seat: ID, TTL, ReleaseTimeout and all
	// others are by process. Value is what Members and Owner show, such as an address.
	//
	// StallTimeout is by partition: a worker that has not called Lease.Check for so long loses
	// its partition, and the member keeps the others. TTL*(1+ClockDrift) later the worker is
	// called again for it, beside the call that hangs.
	Elector elector.Options
}

// A Group is this process's part in a group. Join and New make it. Many goroutines may use
// it at the same time; Run runs once at a time.
type Group struct {
	name     string
	backend  backends.Backend
	owned    bool // Close closes the backend
	store    string
	o        Options
	options  elector.Options // with their defaults
	requests *store.Client
	audit    atomic.Int64 // A
	machine
	reports
	calls

	// Owned by Run and what it starts.
	answered bool // a seat was taken, or another process was faster
	seats    []*seat
	known    *plan                        // the latest plan seen
	trails   []atomic.Pointer[rule.Trail] // see trail
}

// A machine is the clock and the random numbers of this process, and how far its clock may be off.
type machine struct {
	clock  clock.Clock
	random func() uint64
	drift  float64
}

// reports are how a group says what it does.
type reports struct {
	log       *slog.Logger
	callbacks *aside.Queue // of o.Trace
}

// calls are the calls that run now, which Close ends.
type calls struct {
	active  sync.WaitGroup
	alive   context.Context // ends with Close
	kill    context.CancelCauseFunc
	closing sync.Once
	mutex   sync.Mutex
	closed  bool
	run     *running // nil unless Run runs
}

// running is a call of Run.
type running struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Join connects to the store that url names and returns this process's part in the named
// group there. It owns nothing before Run. See elector.Open for the errors and for what
// blocks; Join returns ErrInvalid if the group has another number of partitions.
func Join(ctx context.Context, url, name string, o *Options) (*Group, error) {
	if ctx == nil {
		return nil, &elector.Error{Op: "join", Election: name, Err: errNilContext}
	}
	if err := checkName(name); err != nil {
		return nil, &elector.Error{Op: "join", Election: name, Err: err}
	}
	backend, err := backends.Open(ctx, url)
	if err != nil {
		return nil, &elector.Error{Op: "join", Election: name, Err: err}
	}
	g, err := New(backend, name, o)
	if err == nil {
		g.owned = true
		err = g.reach(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	return g, nil
}

// New returns this process's part in the named group on a backend, which Close leaves
// open. New does no I/O. It returns ErrName or ErrInvalid, and ErrReadOnly for a process that
// takes part if the backend was opened for reading alone.
func New(backend backends.Backend, name string, o *Options) (*Group, error) {
	if backend == nil {
		return nil, &elector.Error{Op: "join", Election: name, Err: fmt.Errorf("%w: the backend is nil", elector.ErrInvalid)}
	}
	fail := func(err error) (*Group, error) {
		return nil, &elector.Error{Op: "join", Election: name, Store: backend.Describe().Store, Err: err}
	}
	if err := checkName(name); err != nil {
		return fail(err)
	}
	m := inject.Of(backend)
	backend = m.Backend
	g := &Group{name: name, backend: backend, store: backend.Describe().Store}
	g.clock, g.random = m.Clock, m.Random
	if o != nil {
		g.o = *o
	}
	if g.o.Weight == 0 {
		g.o.Weight = 1
	}
	if g.o.Trace == nil {
		g.o.Trace = &Trace{}
	}
	switch {
	case g.o.Partitions < 0 || g.o.Partitions > MaxPartitions:
		return fail(fmt.Errorf("%w option: Partitions is %d, not between 1 and %d", elector.ErrInvalid, g.o.Partitions, MaxPartitions))
	case g.o.Weight < 0 || g.o.Weight > maxWeight:
		return fail(fmt.Errorf("%w option: Weight is %d, not between 1 and %d", elector.ErrInvalid, g.o.Weight, maxWeight))
	case g.o.Settle < 0:
		return fail(fmt.Errorf("%w option: Settle is %v, below 0", elector.ErrInvalid, g.o.Settle))
	case len(g.o.Elector.Value) > maxValue:
		return fail(fmt.Errorf("%w option: Elector.Value has %d bytes; a member of a group may have %d", elector.ErrInvalid, len(g.o.Elector.Value), maxValue))
	}
	if err := backend.Describe().Writable(); err != nil && g.o.Partitions > 0 {
		return fail(err)
	}
	first, err := g.newSeat(0, g.o.Elector) // which it checks
	if err != nil {
		return fail(errors.Unwrap(err))
	}
	g.options, g.drift = g.o.Elector, first.View.Drift
	g.options.ID = first.elector.ID() // one for all seats
	g.options.TTL, g.options.RenewEvery, g.options.RequestTimeout, g.options.ReleaseTimeout = first.TTL, first.RenewEvery, first.RequestTimeout, first.ReleaseTimeout
	g.options.Logger = first.Logger
	if first, err = g.newSeat(0, g.quiet()); err != nil {
		return fail(errors.Unwrap(err))
	}
	g.seats = []*seat{first}
	if g.o.Settle == 0 {
		g.o.Settle = g.options.RenewEvery
	}
	g.audit.Store(int64(rule.Audit(g.options.TTL)))
	g.trails = make([]atomic.Pointer[rule.Trail], g.o.Partitions)
	g.log = slog.New(aside.Handler(g.options.Logger.Handler(), aside.Patience)).With("store", g.store, "group", name, "id", g.options.ID)
	g.callbacks = aside.Callbacks(g.log, aside.Patience)
	g.alive, g.kill = context.WithCancelCause(context.Background())
	g.requests = store.New(backend, g.clock, &g.active)
	return g, nil
}

// Name returns the name of the group.
func (g *Group) Name() string { return g.name }

// ID returns the name of this process: Options.Elector.ID or its default.
func (g *Group) ID() string { return g.options.ID }

// FailoverTime returns how long the partitions of one member are without an owner, at most,
// after it has crashed, while the store answers, but for the time that the moves themselves
// take: TTL*(1+ClockDrift), and 3.25 times RenewEvery, if the one that crashed was the first to
// watch the others and the store is only polled. It takes longer if the oldest members crash
// together: see docs/partitions.md.
func (g *Group) FailoverTime() time.Duration {
	return g.challenge() + 3*g.options.RenewEvery + g.options.RenewEvery/4
}

// reach reads the plan, to see whether that works, and whether the group has as many
// partitions.
func (g *Group) reach(ctx context.Context) error {
	ctx, cancel := g.clock.WithTimeout(ctx, max(g.options.RequestTimeout, 10*time.Second))
	defer cancel()
	r, err := g.load(ctx, g.planName())
	if err != nil {
		return g.fail("join", -1, err)
	}
	_, err = g.usable(r)
	return g.fail("join", -1, err)
}

// Run takes a seat and owns partitions until ctx ends. It calls work once for each
// partition that this process owns, on a goroutine of its own, with the lease's context
// and the lease. A worker that returns, fails or panics while the partition is still this
// process's is logged and called again, after a pause.
//
// When ctx ends, Run leaves the group: the others take over while the workers go on, each
// worker's context ends when its partition moves, and Run returns nil once all have
// returned. That takes Settle and the time of the workers, and one or two renewal intervals where
// the store does not push the plan, at most ReleaseTimeout for all;
// if no other process stays, at most a renewal interval and the time of the workers.
//
// When the lease of the seat is lost, all leases have ended. Run waits for the workers, for
// at most ReleaseTimeout, and takes a seat again.
//
// Run returns ErrInvalid if the group has another number of partitions, ErrBusy if it runs
// already, and what cannot pass. Until it has taken a seat, or has lost one to another process
// in the attempt, ErrDenied and ErrMisconfigured cannot; from then on it tries again after them: see
// elector.Elector.Campaign.
func (g *Group) Run(ctx context.Context, work Work) error {
	switch {
	case ctx == nil:
		return g.fail("run", -1, errNilContext)
	case g.o.Partitions == 0:
		return g.fail("run", -1, fmt.Errorf("%w option: Partitions is 0, so this process only looks; set the number to take part", elector.ErrInvalid))
	case work == nil:
		return g.fail("run", -1, fmt.Errorf("%w: the worker is nil", elector.ErrInvalid))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &running{cancel, make(chan struct{})}
	if err := g.enter(r); err != nil {
		return g.fail("run", -1, err)
	}
	defer func() {
		g.mutex.Lock()
		g.run = nil
		g.mutex.Unlock()
		g.active.Done()
		close(r.done)
	}()
	return g.fail("run", -1, g.serve(ctx, work))
}

// enter registers a call of Run.
func (g *Group) enter(r *running) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case g.closed:
		return elector.ErrClosed
	case g.run != nil:
		return elector.ErrBusy
	}
	g.run = r
	g.active.Add(1)
	return nil
}

// begin registers a call, so that Close ends it and waits for it, or returns ErrClosed or
// ErrInvalid. The caller calls end.
func (g *Group) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if ctx == nil {
		return nil, nil, errNilContext
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed {
		return nil, nil, elector.ErrClosed
	}
	g.active.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(g.alive, func() { cancel(elector.ErrClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
		g.active.Done()
	}, nil
}

// Leave makes Run leave the group, as the end of its context does, and blocks until Run
// has returned or ctx ends. To keep a process in the group without partitions see DrainMember.
func (g *Group) Leave(ctx context.Context) error {
	if ctx == nil {
		return g.fail("leave", -1, errNilContext)
	}
	g.mutex.Lock()
	r := g.run
	g.mutex.Unlock()
	if r == nil {
		return nil
	}
	r.cancel(errLeaving)
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return g.fail("leave", -1, context.Cause(ctx))
	}
}

var errLeaving = errors.New("this process leaves the group")

// Close makes Run leave the group, ends all other calls, and closes the connection to the
// store if Join made it. Neither a worker nor the body of a loop over Observe may call it.
//
// Close blocks until all that is done. If Run, or a request to the store, does not return
// within 2*ReleaseTimeout + 4*RequestTimeout, Close does not wait for it and returns an
// error that says so. Later calls wait for the first one and return nil. After Close all
// methods that ask the store return elector.ErrClosed.
func (g *Group) Close() (err error) {
	g.closing.Do(func() { err = g.fail("close", -1, g.close()) })
	return err
}

func (g *Group) close() error {
	g.mutex.Lock()
	g.closed = true
	g.mutex.Unlock()
	g.kill(elector.ErrClosed)
	patience := 2*g.options.ReleaseTimeout + 4*g.options.RequestTimeout
	ctx, cancel := g.clock.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	if g.Leave(ctx) == nil { // otherwise Run still uses its seats
		closed := make([]error, len(g.seats))
		var all sync.WaitGroup
		for i, s := range g.seats {
			all.Go(func() { closed[i] = s.elector.Close() })
		}
		all.Wait()
		errs = closed
	}
	idle := make(chan struct{})
	go func() { g.active.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("a worker or a request to the store has not returned within %v", patience))
	}
	g.callbacks.Flush(time.Second)
	aside.Flush(g.log, time.Second)
	if g.owned {
		errs = append(errs, g.backend.Close())
	}
	return errors.Join(errs...)
}
