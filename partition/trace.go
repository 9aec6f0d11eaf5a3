package partition

import (
	"context"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/tracing"
)

// A Trace is a set of callbacks at the steps of a process's part in a group, for metrics and
// tests; any may be nil. One Trace may serve many groups. The callbacks of a Group run one
// after another, on a goroutine of their own, after everything that safety requires. A
// step waits for its callback, but for 100 ms at most: see [elector.Trace]. A panic in a
// callback is logged. The context has the values of the one that was given to Run.
type Trace struct {
	// Planned: Run begins or the process has left its seat, and Planned is 0; or the
	// process follows a new plan.
	Planned func(context.Context, PlanInfo)
	// Acquired: this process owns a partition. The worker was not called yet.
	Acquired func(context.Context, LeaseInfo)
	// Ended: the lease on a partition is over; Cause is why, and Err is ErrLost or
	// ErrResigned with the reason. The store does not know yet.
	Ended func(context.Context, LeaseInfo)
	// Failed: a worker has returned, failed, panicked or ended its goroutine while the
	// partition is still this process's; Err is what it returned. It is called again.
	Failed func(context.Context, LeaseInfo)
}

// MultiTrace returns a Trace that calls those of the given ones, as
// [elector.MultiTrace] does.
func MultiTrace(traces ...*Trace) *Trace {
	return &Trace{
		Planned:  tracing.Multi(traces, func(t *Trace) func(context.Context, PlanInfo) { return t.Planned }),
		Acquired: tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Acquired }),
		Ended:    tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Ended }),
		Failed:   tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Failed }),
	}
}

// A PlanInfo describes this process's share of a group.
type PlanInfo struct {
	Group      string
	Store      string // as in errors: without a password
	ID         string // of this process
	Partitions int    // of the group
	Planned    int    // how many of them this process should own
}

// A LeaseInfo describes a lease on a partition.
type LeaseInfo struct {
	Group     string
	Store     string
	ID        string // of this process
	Partition int
	Token     elector.Token

	// Unowned is set when Acquired: for how long no process owned the partition, as far as
	// this process knows. It counts from when the plan gave the partition to this process,
	// or from this process's latest read, sent after that, at which another process might
	// still own it. So it has up to RenewEvery/4 too much after a move; and after a crash
	// it does not have the time before the plan, about TTL*(1+ClockDrift).
	Unowned time.Duration

	// Drain is set when Ended, if the worker was told to stop before: how long ago, the
	// time for which the lease was draining.
	Drain time.Duration

	// Cause is set when Ended: "returned", if the partition was given up after its worker
	// had returned; "timeout", if the worker has not returned within ReleaseTimeout of being
	// told to stop, or has not called Check for StallTimeout; "lost", if the lease ended by itself.
	Cause string
	Err   error

	Lease *Lease
}

func (g *Group) info(l *Lease) LeaseInfo {
	return LeaseInfo{Group: g.name, Store: g.store, ID: g.options.ID, Partition: l.partition, Token: l.Token(), Lease: l}
}

// traced runs a user's callback so that its panic does not end the process.
func traced[Info any](g *Group, callback func(context.Context, Info), ctx context.Context, info Info) {
	if callback != nil {
		g.callbacks.Do(func() { aside.Call(g.log, callback, ctx, info) })
	}
}

func (g *Group) tracePlanned(ctx context.Context, planned int) {
	traced(g, g.o.Trace.Planned, ctx, PlanInfo{Group: g.name, Store: g.store, ID: g.options.ID, Partitions: g.o.Partitions, Planned: planned})
}

func (g *Group) traceFailed(l *Lease, err error) {
	info := g.info(l)
	info.Err = err
	traced(g, g.o.Trace.Failed, l.ctx, info)
}

func (g *Group) traceEnded(info LeaseInfo) { traced(g, g.o.Trace.Ended, info.Lease.ctx, info) }
