package elector

import (
	"context"
	"time"
)

// A Trace is a set of callbacks at the steps of an election, for metrics and
// tests; any may be nil. One Trace may serve many elections. A callback runs on
// the goroutine of its step (a campaign, a renewal, or a caller of Leader or
// Observe), after everything that safety requires; several may run at the same
// time. A callback that blocks stops that goroutine: renewals then stop, and the
// lease expires in time. A panic in a callback is logged. The context has the
// values of the one that was given to Campaign, Run, Leader or Observe.
type Trace struct {
	// Campaigning: a campaign begins.
	Campaigning func(context.Context, CampaignInfo)
	// Waiting: the campaign waits; Err is the reason, such as ErrHeld.
	Waiting func(context.Context, CampaignInfo)
	// Request: a request to the store was answered or given up.
	Request func(context.Context, RequestInfo)
	// Observed: this process has seen a new state of the record, renewals
	// included. Where the store pushes states, some may be skipped.
	Observed func(context.Context, LeaderInfo)
	// Acquired: this process leads.
	Acquired func(context.Context, LeaseInfo)
	// Renewed: the lease was renewed.
	Renewed func(context.Context, LeaseInfo)
	// Disbelieved: the store has applied this process's acquisition, but the
	// process does not lead; Err is what it has seen meanwhile.
	Disbelieved func(context.Context, LeaseInfo)
	// Ended: the lease is over; Err is ErrLost or ErrResigned, with the
	// reason. The store does not know yet.
	Ended func(context.Context, LeaseInfo)
	// Released: the store knows that the lease is over, or Err is why it could
	// not be told.
	Released func(context.Context, LeaseInfo)
}

// A CampaignInfo describes a campaign.
type CampaignInfo struct {
	Election string
	Err      error // the reason of the wait
}

// A RequestInfo describes a request to the store.
type RequestInfo struct {
	Election string
	Op       string // "load", "swap", "watch" or "watch-presence"; "healthy" for Options.Healthy
	Duration time.Duration
	Err      error
}

// A LeaderInfo describes a state of the record.
type LeaderInfo struct {
	Election string
	Leader   Leader
}

// A LeaseInfo describes a lease.
type LeaseInfo struct {
	Election  string
	Token     Token
	Remaining time.Duration // validity that is left
	Err       error
}

// traced runs a user's callback so that its panic does not end the election.
func traced[Info any](e *Elector, callback func(context.Context, Info), ctx context.Context, info Info) {
	if callback == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("elector: a Trace callback panicked", "panic", p)
		}
	}()
	callback(ctx, info)
}

func (e *Elector) traceWaiting(ctx context.Context, f *failure) {
	traced(e, e.o.Trace.Waiting, ctx, CampaignInfo{e.name, f.err})
}

func (e *Elector) traceRequest(ctx context.Context, why purpose, d time.Duration, f *failure) {
	traced(e, e.o.Trace.Request, ctx, RequestInfo{e.name, why.String(), d, f.shown()})
}

// traceNews traces the latest state, unless that was done before.
func (e *Elector) traceNews(ctx context.Context) {
	if e.o.Trace.Observed == nil {
		return
	}
	if l, news := e.view.takeNews(); news {
		traced(e, e.o.Trace.Observed, ctx, LeaderInfo{e.name, l})
	}
}
