package store

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// A kind is a kind of requests.
type kind uint8

const (
	swaps kind = iota
	loads
	kinds
)

// A handle is the room of the requests to one backend.
type handle struct {
	backend backends.Backend
	clock   clock.Clock
	own     bool // of one client
	users   int  // requests, batches and places, guarded by the mutex of handles

	mutex sync.Mutex
	lines [kinds]line
	wire  int           // the most requests under way
	under int           // requests under way that keep their place
	trip  time.Duration // of the slowest of the latest swaps
	due   time.Duration // when to dispatch next, 0 if no timer runs
	stop  func() bool   // stops that timer
}

// handles has a handle for each backend that is in use.
var handles = struct {
	sync.Mutex
	of map[backends.Backend]*handle
}{of: map[backends.Backend]*handle{}}

// enter returns the handle of the client's backend, which is in use until leave.
func (c *Client) enter() *handle {
	handles.Lock()
	defer handles.Unlock()
	h := c.own
	if h == nil {
		if h = handles.of[c.backend]; h == nil {
			h = newHandle(c.backend, c.clock)
			handles.of[c.backend] = h
		}
	}
	h.users++
	return h
}

// enter is Client.enter for a handle that is in use.
func (h *handle) enter() {
	handles.Lock()
	defer handles.Unlock()
	h.users++
}

func (h *handle) leave() {
	handles.Lock()
	defer handles.Unlock()
	if h.users--; h.users == 0 && !h.own {
		delete(handles.of, h.backend)
	}
}

func newHandle(backend backends.Backend, c clock.Clock) *handle {
	h, d := &handle{backend: backend, clock: c, wire: plainWires}, backend.Describe()
	h.lines[swaps] = line{kind: swaps, size: size{most: 1, now: 1}, wires: plainWires, send: func(ctx context.Context, all []*Request) []backends.Outcome {
		r := all[0]
		record, err := backend.Swap(ctx, r.name, r.change.Prev, r.change.Next)
		return []backends.Outcome{{Record: record, Err: err}}
	}}
	h.lines[loads] = line{kind: loads, size: size{most: 1, now: 1}, wires: plainWires, send: func(ctx context.Context, all []*Request) []backends.Outcome {
		record, err := backend.Load(ctx, all[0].name)
		return []backends.Outcome{{Record: record, Err: err}}
	}}
	if b, ok := backend.(backends.BatchSwapper); ok && d.MaxSwaps > 1 {
		h.lines[swaps].batches(d.MaxSwaps, swapWait, func(ctx context.Context, all []*Request) []backends.Outcome {
			changes := make([]backends.Change, len(all))
			for i, r := range all {
				changes[i] = r.change
			}
			return b.SwapMany(ctx, changes)
		})
	}
	if b, ok := backend.(backends.BatchLoader); ok && d.MaxLoads > 1 {
		h.lines[loads].batches(d.MaxLoads, readWait, func(ctx context.Context, all []*Request) []backends.Outcome {
			names := make([]string, len(all))
			for i, r := range all {
				names[i] = r.name
			}
			return b.LoadMany(ctx, names)
		})
	}
	if h.lines[swaps].most > 1 && h.lines[loads].most > 1 {
		h.wire = wires
	}
	return h
}

// dispatch sends what may be sent now, and sees to it that it is called again. The caller
// holds the mutex.
func (h *handle) dispatch() {
	now := h.clock.Now().Mono
	for {
		l, first := h.next(now)
		if l == nil {
			break
		}
		b := l.gather(first, now, h.trip)
		l.under++
		l.busy++
		h.under++
		h.enter()
		go h.carry(l, b)
	}
	due := never
	for k := range h.lines {
		if d := h.lines[k].due(now); d > now { // others wait for a place, not for a time
			due = min(due, d)
		}
	}
	switch {
	case due == never || h.due != 0 && h.due <= due:
		return
	case h.stop != nil:
		h.stop()
	}
	h.due = due
	h.stop = h.clock.AfterFunc(due-now, func() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if h.due == due {
			h.due, h.stop = 0, nil
			h.dispatch()
		}
	})
}

// next returns the line of which a request goes next, and the rank that it goes by; nil if
// none may go now.
func (h *handle) next(now time.Duration) (*line, Rank) {
	for rank := range ranks {
		l := h.first(rank, now)
		switch {
		case l == nil:
			continue
		case rank == Keep && l.piles[Keep].all[0].Urgent > now: // there is time for others
			if gain := h.first(Gain, now); gain != nil {
				return gain, Gain
			}
			if h.under >= Gain.share(h.wire) && h.waits(Gain, now) {
				return nil, 0 // for the next place
			}
		}
		return l, rank
	}
	return nil, 0
}

// first returns the line of which a request of the rank goes first, nil if none may go now.
func (h *handle) first(rank Rank, now time.Duration) (first *line) {
	for k := range h.lines {
		l := &h.lines[k]
		if h.may(l, rank, now) && (first == nil || l.piles[rank].all[0].before(first.piles[rank].all[0])) {
			first = l
		}
	}
	return first
}

// waits reports whether a request of the rank waits for a place.
func (h *handle) waits(rank Rank, now time.Duration) bool {
	for k := range h.lines {
		if l := &h.lines[k]; len(l.piles[rank].all) > 0 && l.leaves(now) {
			return true
		}
	}
	return false
}

// may reports whether a request of the rank may go now.
func (h *handle) may(l *line, rank Rank, now time.Duration) bool {
	return len(l.piles[rank].all) > 0 && l.under < rank.share(l.wires) && h.under < rank.share(h.wire) && l.leaves(now)
}
