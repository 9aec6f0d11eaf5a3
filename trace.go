package elector

import "time"

// A Trace is a set of callbacks at the steps of an election, for metrics and
// tests; any may be nil. They run on the goroutine at which the step happened,
// that of a campaign, a renewal, a watch, or a caller of Leader or Observe, so
// at the same time too; and after whatever safety asks for has been done. One
// that blocks stops that goroutine: renewals then stop, and the lease ends in
// time. One that panics is logged.
type Trace struct {
	// Request: a request to the store was answered or given up.
	Request func(RequestInfo)
	// Observed: a new state of the record was seen, renewals included.
	Observed func(Leader)
	// Acquired: this process leads.
	Acquired func(token Token, ttl time.Duration)
	// Renewed: the lease was renewed. Remaining is how long it is now valid.
	Renewed func(token Token, remaining time.Duration)
	// Ended: the lease is over; cause is ErrLost or ErrResigned, with the
	// reason. The store has not been told yet.
	Ended func(token Token, cause error)
	// Released: the store was told that the lease was resigned, or could not
	// be.
	Released func(token Token, err error)
}

// RequestInfo describes a request to the store.
type RequestInfo struct {
	Op       string // "load", "swap", "watch" or "watch-presence"; "healthy" for Options.Healthy
	Duration time.Duration
	Err      error
}

// traced runs a user's callback so that its panic does not end the election.
func (e *Elector) traced(callback func()) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("elector: a Trace callback panicked", "panic", p)
		}
	}()
	callback()
}

func (e *Elector) traceRequest(op string, d time.Duration, err error) {
	if f := e.o.Trace.Request; f != nil {
		e.traced(func() { f(RequestInfo{op, d, err}) })
	}
}

func (e *Elector) traceObserved(l Leader) {
	if f := e.o.Trace.Observed; f != nil {
		e.traced(func() { f(l) })
	}
}

func (e *Elector) traceAcquired(token Token) {
	if f := e.o.Trace.Acquired; f != nil {
		e.traced(func() { f(token, e.o.TTL) })
	}
}

func (e *Elector) traceRenewed(l *Lease) {
	if f := e.o.Trace.Renewed; f != nil {
		e.traced(func() { f(l.token, l.Remaining()) })
	}
}

func (e *Elector) traceEnded(l *Lease, cause error) {
	if f := e.o.Trace.Ended; f != nil {
		e.traced(func() { f(l.token, cause) })
	}
}

func (e *Elector) traceReleased(l *Lease, err error) {
	if f := e.o.Trace.Released; f != nil {
		e.traced(func() { f(l.token, err) })
	}
}
