package history

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
)

// A Recorder tells what one candidate does. Its methods may be called at the
// same time.
type Recorder struct {
	Election  string
	Candidate string // also the ID in Options
	Tell      func(Event)

	lease atomic.Pointer[Lease] // that Look has reported last

	mutex sync.Mutex
	seen  string
}

// A Lease is what a candidate has: an *elector.Lease or a *partition.Lease.
type Lease interface {
	Token() elector.Token
	Check() error
	Remaining() time.Duration
}

// Trace returns callbacks that tell what the elector does. Acquired is not among
// them: the worker tells it, by Look, of the lease that it was given.
func (r *Recorder) Trace() *elector.Trace {
	return &elector.Trace{
		Request: r.Request,
		Observed: func(_ context.Context, i elector.LeaderInfo) {
			l := i.Leader
			r.mutex.Lock()
			changed := r.seen != l.ID
			r.seen = l.ID
			r.mutex.Unlock()
			if changed && !l.Vacant() && l.ID != r.Candidate {
				r.Event(Event{Kind: Waits, Token: l.Token, Holder: l.ID})
			}
		},
		Renewed: func(_ context.Context, i elector.LeaseInfo) {
			// What remains is asked again: between the two readings of the
			// clock, as Event says.
			if l := r.lease.Load(); l != nil && (*l).Token() == i.Token {
				r.Look(Renewed, *l, 0)
			}
		},
		Discarded: func(_ context.Context, i elector.LeaseInfo) {
			r.Event(Event{Kind: Discarded, Token: i.Token, Detail: i.Err.Error()})
		},
		Ended: func(_ context.Context, i elector.LeaseInfo) { r.Over(i.Token, i.Err) },
		Released: func(_ context.Context, i elector.LeaseInfo) {
			e := Event{Kind: Released, Token: i.Token}
			if i.Err != nil {
				e.Detail = i.Err.Error()
			}
			r.Event(e)
		},
	}
}

// Request is a callback of a Trace that records failed requests.
func (r *Recorder) Request(_ context.Context, i elector.RequestInfo) {
	if i.Err == nil || errors.Is(i.Err, context.Canceled) {
		return
	}
	begun := BootTime()
	if i.Op == "load" || i.Op == "swap" { // others may have lasted for long before
		begun -= i.Duration
	}
	r.Failed(i.Op+": ", i.Err, begun)
}

// Failed tells that a request to the store failed which began at some time.
func (r *Recorder) Failed(doing string, err error, begun time.Duration) {
	e := Event{Kind: Trouble, Detail: doing + err.Error()}
	switch {
	case errors.Is(err, elector.ErrForeignRecord):
		e.Kind, e.Before = Foreign, begun
	case errors.Is(err, elector.ErrDenied), errors.Is(err, elector.ErrMisconfigured), errors.Is(err, elector.ErrReadOnly):
		e.Kind, e.Before = Denied, begun
	}
	r.Event(e)
}

// Over tells that a lease is over, and why.
func (r *Recorder) Over(token elector.Token, err error) {
	why := "resigned: "
	if errors.Is(err, elector.ErrLost) {
		why = "lost: "
	}
	r.Event(Event{Kind: Ended, Token: token, Detail: why + err.Error()})
}

// Event tells something that is known now.
func (r *Recorder) Event(e Event) {
	e.Election, e.Candidate = r.Election, r.Candidate
	if e.Before == 0 {
		e.Before = BootTime()
	}
	e.At = BootTime()
	r.Tell(e)
}

// Look asks the lease and tells what it says, as an event of the kind.
func (r *Recorder) Look(kind Kind, lease Lease, number uint64) bool {
	r.lease.Store(&lease)
	e := Event{Kind: kind, Token: lease.Token(), Number: number, Before: BootTime()}
	if e.Valid = lease.Check() == nil; !e.Valid && kind == Writing {
		e.Kind = Checked // no write follows
	}
	e.Left = lease.Remaining()
	r.Event(e)
	return e.Valid
}

// Leader reads the record and tells what it says.
func (r *Recorder) Leader(ctx context.Context, e *elector.Elector) {
	before := BootTime()
	if l, err := e.Leader(ctx); err == nil {
		r.Event(Event{Kind: Observed, Before: before, Token: l.Token, Holder: l.ID})
	}
}

// WatchStalls tells when this process stood still, because it was stopped or
// had no processor, until ctx ends. What a candidate does late because of that
// is not its fault.
func (r *Recorder) WatchStalls(ctx context.Context) {
	const interval, most = 10 * time.Millisecond, 30 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for last := BootTime(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := BootTime()
		if now-last > most {
			r.Event(Event{Kind: Stalled, Left: now - last - interval})
		}
		last = now
	}
}
