package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
)

// Waiters and observers of this process that read again and again through one
// backend share requests, if it is a backends.BatchLoader. The reads of all come at the
// same points of time, wait a moment for each other, and go together. The read that
// begins an attempt joins the others, but waits only while a read is on its way.
//
// A read joins only a batch that has not been sent, and what it overlaps with is
// counted then. A read-back never shares: a write without an answer may need a read
// of its own kind (see backends/postgres), and a lease waits for it.

const (
	// readWait is the longest that a read waits for others.
	readWait = 3 * time.Millisecond

	// readGrid is the longest time between the points at which waiters read.
	readGrid = 50 * time.Millisecond
)

// loads joins the reads through one backend.
type loads = sharer[aLoad]

// An aLoad is a read that may share a request.
type aLoad struct {
	name string // of the election
	sent func() // called when the request is sent
}

// sharedLoads holds the loads of all backends through which this process waits.
var sharedLoads = sharers[aLoad]{of: map[backends.Backend]*loads{}}

// loadsOf adds a campaign or an observer, which leaves at its end. It returns nil if
// the backend is no BatchLoader, or pushes what they would read.
func loadsOf(backend backends.Backend) *loads {
	b, ok := backend.(backends.BatchLoader)
	if !ok {
		return nil
	}
	d := b.Describe()
	if _, watches := backends.AsWatcher(b); watches && d.PushesRenewals {
		return nil
	}
	return sharedLoads.enter(b, d.MaxLoads, func() *loads { return newLoads(b) })
}

func newLoads(b backends.BatchLoader) *loads {
	return &loads{
		sent: func(l aLoad) { l.sent() },
		send: func(ctx context.Context, all []aLoad) []backends.Outcome {
			if len(all) == 1 {
				r, err := b.Load(ctx, all[0].name)
				return []backends.Outcome{{Record: r, Err: err}}
			}
			names := make([]string, len(all))
			for i, l := range all {
				names[i] = l.name
			}
			return b.LoadMany(ctx, names)
		},
	}
}

// onGrid returns when to read what is due at next: at the next point that all share,
// if there are others. An interval of the holder has eight points at least, and each
// grid is part of the finer ones.
func onGrid(s *loads, next, every time.Duration) time.Duration {
	if s.points() == 0 {
		return next
	}
	grid := readGrid
	for grid > max(every/8, 1) {
		grid /= 2
	}
	if late := next % grid; late > 0 {
		next += grid - late
	}
	return next
}

// loadTogether is load for a read that may share a request. One that was due at a
// point of the grid waits for others. shares is owned by the caller, and decides
// as for renewals: after a request for several that failed, some go by themselves.
func (e *Elector) loadTogether(ctx context.Context, why purpose, s *loads, shares *sharing, waits bool) (backends.Record, *failure) {
	shares.shared = s != nil && shares.alone == 0
	if !shares.shared {
		shares.outcome(nil)
		return e.load(ctx, e.o.RequestTimeout, why)
	}
	r, f := e.loadBy(ctx, e.o.RequestTimeout, why, func(ctx context.Context, sent func()) (backends.Record, error) {
		return shareLoad(ctx, s, e, aLoad{e.name, sent}, waits && s.points() > 0)
	})
	shares.outcome(f)
	if f != nil && f.kind == untried {
		return e.load(ctx, e.o.RequestTimeout, why)
	}
	return r, f
}

// shareLoad makes a read with others, or by itself if there are none. It returns what
// Load would, or ErrNotTried if others may be to blame for an error that trying again
// cannot help.
func shareLoad(ctx context.Context, s *loads, e *Elector, l aLoad, waits bool) (backends.Record, error) {
	alone := func() (backends.Record, error) {
		l.sent()
		return e.backend.Load(ctx, l.name)
	}
	if !waits && s.takesOff() {
		defer s.lands()
		return alone()
	}
	o, together := s.share(ctx, e, l, min(readWait, e.o.RequestTimeout/32))
	switch {
	case together == 0:
		return alone()
	case together > 1 && kindOf(o.Err).permanent():
		return backends.Record{}, fmt.Errorf("%w: %v", backends.ErrNotTried, o.Err)
	}
	return o.Record, o.Err
}

// takesOff begins a request of one, if no other is on its way.
func (s *sharer[T]) takesOff() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.open != nil || s.flying > 0 {
		return false
	}
	s.flying++
	return true
}

// lands ends a request that took off.
func (s *sharer[T]) lands() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.flying--
}
