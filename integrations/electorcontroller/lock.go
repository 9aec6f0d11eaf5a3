package electorcontroller

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/elector-go/elector"
)

// A Lock is client-go's resourcelock.Interface on an election. NewLock makes it, and
// Start runs the manager, or whatever runs client-go's LeaderElector, under it:
//
//	lock := electorcontroller.NewLock(e)
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection:                      true,
//		LeaderElectionResourceLockInterface: lock,
//		GracefulShutdownTimeout:             new(time.Duration(-1)),
//	})
//	…
//	err = lock.Start(ctx, mgr.Start)
//
// The Elector campaigns, renews and decides who leads; client-go only learns of it. So
// its LeaseDuration and RenewDeadline decide nothing, and a waiting process takes over
// as soon as the Elector does, without polling. A Lock
//
//   - refuses to lead outside of Start, which ends the manager's context with the lease;
//   - is for one term: when its lease has ended it refuses to lead again, because a
//     LeaderElector that wins within RenewDeadline does not notice that it had lost;
//   - shows this process as the holder only while its lease is valid, and never another
//     process, not even one with the same ID. So LeaderElector.IsLeader means this
//     process; for the others, ask Elector.Leader or Elector.Observe;
//   - does not release the lease when client-go does (ReleaseOnCancel): Start does, when
//     the manager has stopped.
//
// If client-go might hang, set Options.StallTimeout, to several times RetryPeriod: the
// lease is then renewed only while client-go asks, or Check is called. A Lock does not
// serve coordinated leader election.
type Lock struct {
	elector  *elector.Elector
	started  atomic.Bool
	asked    chan struct{} // closed when client-go first asks to lead
	ask      func()
	led      chan struct{} // closed when lease is set
	lease    *elector.Lease
	over     chan struct{} // closed when there will be no lease any more
	released atomic.Bool   // by client-go
	reads    atomic.Uint64
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns a Lock that leads when e does. It does no I/O. Close e after Start
// has returned.
func NewLock(e *elector.Elector) *Lock {
	l := &Lock{elector: e, asked: make(chan struct{}), led: make(chan struct{}), over: make(chan struct{})}
	l.ask = sync.OnceFunc(func() { close(l.asked) })
	return l
}

// Start calls start, such as a manager's Start, with a context that ends with ctx and
// with the lease. From the first time that client-go asks to lead, the Elector
// campaigns. Start blocks until start has returned. Call it once.
//
// If start returns nil, the lease is resigned. If it returns an error, the store is not
// told, and Start returns the error: see [Run]. Start returns ErrLost if the lease was
// lost; the manager cannot be started again, so end the process, or make another
// manager and another Lock. It returns ErrInvalid if it was called before, and what
// [elector.Elector.Campaign] returns if campaigning cannot succeed.
func (l *Lock) Start(ctx context.Context, start func(context.Context) error) error {
	if l.started.Swap(true) {
		return l.fail(fmt.Errorf("%w: Start was called before; a Lock is for one manager, which starts once", elector.ErrInvalid))
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	campaign, giveUp := context.WithCancel(ctx)
	var result, lost error
	stopped := make(chan struct{})
	go func() {
		defer giveUp()
		defer close(stopped)
		result = start(ctx)
	}()
	select {
	case <-l.asked:
	case <-stopped:
		return result
	}
	err := Run(campaign, l.elector, func(term context.Context, lease *elector.Lease) error {
		defer giveUp() // no second term
		l.lease = lease
		close(l.led)
		unhook := context.AfterFunc(term, func() { stop(context.Cause(term)) })
		defer unhook()
		<-stopped
		lost = lease.Check()
		return result
	})
	close(l.over)
	stop(err)
	<-stopped
	return cmp.Or(err, result, lost)
}

// Lease returns the lease of this process, for its Check, Context and Token; or
// ErrNotLeader.
func (l *Lock) Lease() (*elector.Lease, error) {
	select {
	case <-l.led:
		return l.lease, l.lease.Check()
	default:
		return nil, l.fail(elector.ErrNotLeader)
	}
}

// Get implements resourcelock.Interface. It makes no request.
func (l *Lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r := &resourcelock.LeaderElectionRecord{}
	if _, err := l.Lease(); err == nil && !l.released.Load() {
		r.HolderIdentity = l.Identity()
	}
	// client-go ignores a record with the same bytes as at its last Get, although its
	// own Update may have come between.
	return r, strconv.AppendUint(nil, l.reads.Add(1), 10), nil
}

// Create implements resourcelock.Interface. It is Update.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

// Update implements resourcelock.Interface. It blocks until this process leads, or ctx
// or Start ends. From then on it makes no request, and returns nil while the lease is
// valid.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	switch {
	case r.HolderIdentity == "":
		l.released.Store(true)
		return nil
	case r.HolderIdentity != l.Identity():
		return l.fail(fmt.Errorf("%w: a record of %q; this Lock is of %q", elector.ErrInvalid, r.HolderIdentity, l.Identity()))
	case !l.started.Load():
		return l.fail(fmt.Errorf("%w: start the manager with Lock.Start, which ends it with the lease", elector.ErrInvalid))
	case l.released.Load():
		return l.fail(fmt.Errorf("%w: the lock was released, and is for one term", elector.ErrNotLeader))
	}
	l.ask()
	select {
	case <-l.led:
		return l.lease.Check()
	case <-l.over:
		return l.fail(fmt.Errorf("%w: the manager is to stop", elector.ErrNotLeader))
	case <-ctx.Done():
		return l.fail(context.Cause(ctx))
	}
}

// Identity implements resourcelock.Interface. It returns the Elector's ID.
func (l *Lock) Identity() string { return l.elector.ID() }

// Describe implements resourcelock.Interface.
func (l *Lock) Describe() string { return "election " + strconv.Quote(l.elector.Name()) }

// RecordEvent implements resourcelock.Interface. It does nothing: Options.Logger and
// Options.Trace report each change of leadership.
func (l *Lock) RecordEvent(string) {}

func (l *Lock) fail(err error) error {
	return fmt.Errorf("electorcontroller: election %q: %w", l.elector.Name(), err)
}
