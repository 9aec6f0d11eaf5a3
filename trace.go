package elector

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/tracing"
)

// A Trace is a set of callbacks at the steps of an election, for metrics and
// tests; any may be nil. One Trace may serve many elections. The callbacks of an
// Elector run one after another, on a goroutine of their own, after everything that
// safety requires. A step (a campaign, a renewal, or a call of Leader or Observe)
// waits for its callback, but for 100 ms at most, which is logged, and then for none
// until the callback has returned and those after it have been called. Of these 1,000
// are kept; how many were lost is logged. A panic in a callback is logged. The context has
// the values of the one that was given to Campaign, Run, Leader or Observe.
type Trace struct {
	// Campaigning: a campaign begins.
	Campaigning func(context.Context, CampaignInfo)
	// Waiting: the campaign waits; Err is the reason, such as ErrHeld.
	Waiting func(context.Context, CampaignInfo)
	// Campaigned: the campaign is over; Err is nil if this process leads.
	Campaigned func(context.Context, CampaignInfo)
	// Request: a request to the store was answered or given up.
	Request func(context.Context, RequestInfo)
	// Observed: this process has seen a new state of the record, renewals
	// included. Where the store pushes states, some may be skipped.
	Observed func(context.Context, LeaderInfo)
	// Acquired: this process leads.
	Acquired func(context.Context, LeaseInfo)
	// Renewed: the lease was renewed.
	Renewed func(context.Context, LeaseInfo)
	// Discarded: the store has applied this process's acquisition, but the
	// process does not lead; Err is what it has seen meanwhile.
	Discarded func(context.Context, LeaseInfo)
	// Ended: the lease is over; Cause is why, and Err is ErrLost or ErrResigned
	// with the reason. The store does not know yet.
	Ended func(context.Context, LeaseInfo)
	// Released: the store knows that the lease is over, or Err is why it could
	// not be told.
	Released func(context.Context, LeaseInfo)
	// Refused: a Fence with this Trace refused a write. The context is that of
	// Enter, and a panic passes to its caller.
	Refused func(context.Context, *StaleError)
}

// MultiTrace returns a Trace that calls those of the given ones, in their order.
// If a callback panics, those after it are not called. Nil Traces are left out.
func MultiTrace(traces ...*Trace) *Trace {
	return &Trace{
		Campaigning: tracing.Multi(traces, func(t *Trace) func(context.Context, CampaignInfo) { return t.Campaigning }),
		Waiting:     tracing.Multi(traces, func(t *Trace) func(context.Context, CampaignInfo) { return t.Waiting }),
		Campaigned:  tracing.Multi(traces, func(t *Trace) func(context.Context, CampaignInfo) { return t.Campaigned }),
		Request:     tracing.Multi(traces, func(t *Trace) func(context.Context, RequestInfo) { return t.Request }),
		Observed:    tracing.Multi(traces, func(t *Trace) func(context.Context, LeaderInfo) { return t.Observed }),
		Acquired:    tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Acquired }),
		Renewed:     tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Renewed }),
		Discarded:   tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Discarded }),
		Ended:       tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Ended }),
		Released:    tracing.Multi(traces, func(t *Trace) func(context.Context, LeaseInfo) { return t.Released }),
		Refused:     tracing.Multi(traces, func(t *Trace) func(context.Context, *StaleError) { return t.Refused }),
	}
}

// A CampaignInfo describes a campaign.
type CampaignInfo struct {
	Election string
	Store    string        // as in errors: without a password
	Err      error         // the reason of the wait, or of the end
	Duration time.Duration // Campaigned: of the campaign
}

// A RequestInfo describes a request to the store.
type RequestInfo struct {
	Election string
	Store    string
	Op       string // "load", "swap", "watch" or "watch-presence"; "healthy" for Options.Healthy
	Result   string // "ok"; "conflict": another process wrote first; "cancelled" by the caller; or "error"
	Duration time.Duration
	Err      error
}

// A LeaderInfo describes a state of the record.
type LeaderInfo struct {
	Election string
	Store    string
	Leader   Leader
}

// A LeaseInfo describes a lease.
type LeaseInfo struct {
	Election  string
	Store     string
	Token     Token
	Validity  time.Duration // for how long a renewal makes it valid: TTL*(1-ClockDrift)
	Remaining time.Duration // validity that is left
	Margin    time.Duration // Renewed: what was left when the renewal was acknowledged
	Duration  time.Duration // Released: of the release
	Cause     string        // Ended: "resigned", "unhealthy", "lost" or "deposed"
	Err       error

	// Lease is the lease itself, nil when Discarded and for a release without a
	// lease. A callback must not wait for its end.
	Lease *Lease
}

// The reports of an Elector go to the log and to o.Trace.
type reports struct {
	log      *slog.Logger
	storeLog *slog.Logger // for what concerns several elections

	callbacks *aside.Queue  // of o.Trace
	traced    atomic.Uint64 // number of the latest state that was traced
}

// traced runs a user's callback so that its panic does not end the election.
func traced[Info any](e *Elector, callback func(context.Context, Info), ctx context.Context, info Info) {
	if callback != nil {
		e.callbacks.Do(func() { aside.Call(e.log, callback, ctx, info) })
	}
}

// queued is the first half of traced: callbacks after it are called after it. The function
// that it returns is the other half, which waits.
func queued[Info any](e *Elector, callback func(context.Context, Info), ctx context.Context, info Info) (wait func()) {
	if callback == nil {
		return func() {}
	}
	return e.callbacks.Add(func() { aside.Call(e.log, callback, ctx, info) })
}

func (e *Elector) traceWaiting(ctx context.Context, f *failure) {
	traced(e, e.o.Trace.Waiting, ctx, CampaignInfo{Election: e.name, Store: e.store, Err: f.err})
}

func (e *Elector) traceCampaigned(ctx context.Context, err error) {
	traced(e, e.o.Trace.Campaigned, ctx, CampaignInfo{Election: e.name, Store: e.store, Err: err, Duration: e.clock.Now().Mono - e.began})
}

func (e *Elector) traceRequest(ctx context.Context, why string, d time.Duration, f *failure) {
	traced(e, e.o.Trace.Request, ctx, RequestInfo{Election: e.name, Store: e.store, Op: why, Result: f.result(), Duration: d, Err: f.shown()})
}

// traceNews traces the latest state, unless that was done before.
func (e *Elector) traceNews(ctx context.Context) {
	if e.o.Trace.Observed == nil {
		return
	}
	s := e.view.Snapshot()
	if before := e.traced.Load(); s.Number > before && e.traced.CompareAndSwap(before, s.Number) {
		traced(e, e.o.Trace.Observed, ctx, LeaderInfo{Election: e.name, Store: e.store, Leader: e.leader(s.Record)})
	}
}
