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
	key     any // in handles
	users   int // requests, batches and places, guarded by the mutex of handles

	mutex sync.Mutex
	lines [kinds]line
	wire  int           // the most requests under way
	under int           // requests under way that keep their place
	trip  time.Duration // of the slowest of the latest swaps
	due   time.Duration // when to dispatch next, 0 if no timer runs
}

// handles has a handle for each backend that is in use, by the key of its clients.
var handles = struct {
	sync.Mutex
	of map[any]*handle
}{of: map[any]*handle{}}

// enter returns the handle of the client's backend, which is in use until leave.
func (c *Client) enter() *handle {
	handles.Lock()
	defer handles.Unlock()
	h := handles.of[c.key]
	if h == nil {
		h = newHandle(c)
		handles.of[c.key] = h
	}
	h.users++
	return h
}

func (h *handle) leave() {
	handles.Lock()
	defer handles.Unlock()
	if h.users--; h.users == 0 {
		delete(handles.of, h.key)
	}
}

func newHandle(c *Client) *handle {
	h, d := &handle{backend: c.backend, clock: c.clock, key: c.key, wire: plainWires}, c.backend.Describe()
	_, swapsMany := h.backend.(backends.BatchSwapper)
	_, loadsMany := h.backend.(backends.BatchLoader)
	h.lines[swaps] = newLine(swaps, swapsMany, d.MaxSwaps, swapWait)
	h.lines[loads] = newLine(loads, loadsMany, d.MaxLoads, readWait)
	if h.lines[swaps].most > 1 && h.lines[loads].most > 1 {
		h.wire = wires
	}
	return h
}

// send makes the requests of a batch through the backend, as one.
func (h *handle) send(ctx context.Context, l *line, all []*Request) []backends.Outcome {
	switch r := all[0]; {
	case l.kind == swaps && len(all) == 1:
		record, err := h.backend.Swap(ctx, r.name, r.change.Prev, r.change.Next)
		return []backends.Outcome{{Record: record, Err: err}}
	case l.kind == swaps:
		changes := make([]backends.Change, len(all))
		for i, r := range all {
			changes[i] = r.change
		}
		return h.backend.(backends.BatchSwapper).SwapMany(ctx, changes)
	case len(all) == 1:
		record, err := h.backend.Load(ctx, r.name)
		return []backends.Outcome{{Record: record, Err: err}}
	}
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	return h.backend.(backends.BatchLoader).LoadMany(ctx, names)
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
		b.requests[0].client.enter()
		go h.carry(l, b)
	}
	due := never
	for k := range h.lines {
		if d := h.lines[k].due(now); d > now { // others wait for a place, not for a time
			due = min(due, d)
		}
	}
	if due == never || h.due != 0 && h.due <= due {
		return
	}
	h.due = due
	h.after(due-now, func() {
		if h.due == due { // no earlier one was set since
			h.due = 0
			h.dispatch()
		}
	})
}

// after calls f later, with the mutex. It returns a function that stops that.
func (h *handle) after(d time.Duration, f func()) (stop func() bool) {
	return h.clock.AfterFunc(d, func() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		f()
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
		case rank == Keep && l.piles[Keep][0].Urgent > now: // there is time for others
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
		if h.may(l, rank, now) && (first == nil || l.piles[rank][0].before(first.piles[rank][0])) {
			first = l
		}
	}
	return first
}

// waits reports whether a request of the rank waits for a place.
func (h *handle) waits(rank Rank, now time.Duration) bool {
	for k := range h.lines {
		if l := &h.lines[k]; len(l.piles[rank]) > 0 && l.leaves(now) {
			return true
		}
	}
	return false
}

// may reports whether a request of the rank may go now.
func (h *handle) may(l *line, rank Rank, now time.Duration) bool {
	return len(l.piles[rank]) > 0 && l.under < rank.share(l.wires) && h.under < rank.share(h.wire) && l.leaves(now)
}
