package electorhttp

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
)

// A hub is what an Observer and a Router share: the leases under which this process
// serves requests, and what wakes those that wait.
type hub struct {
	keep func() bool // observe on after the context of Observe has ended, until stop
	stop func()

	waiting atomic.Int64 // requests

	mutex    sync.Mutex
	doors    map[int]*door // by partition; 0 for an election
	changed  chan struct{} // closed when anything changes that a view shows
	seen     bool          // what is observed was known once
	ended    bool          // it is not observed any more
	stopping bool          // Serve was told to stop
	came     time.Time     // the last request that another process had forwarded
}

// A lease is one on an election or on a partition.
type lease interface {
	Context() context.Context
	Check() error
	Remaining() time.Duration
}

// A door lets requests in under a lease.
type door struct {
	lease  lease
	inside sync.WaitGroup // requests
}

// newHub returns a hub, and a context to observe with.
func newHub(ctx context.Context) (*hub, context.Context) {
	h := &hub{doors: map[int]*door{}, changed: make(chan struct{})}
	observing, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop, h.keep = stop, context.AfterFunc(ctx, stop)
	return h, observing
}

// set makes a change, and wakes the requests that wait.
func (h *hub) set(change func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	change()
	close(h.changed)
	h.changed = make(chan struct{})
}

// enter returns a door with one more request inside, or nil if it is not open. The caller
// holds the mutex.
func (h *hub) enter(d *door) *door {
	if d == nil || d.lease.Context().Err() != nil || d.lease.Remaining() == 0 {
		return nil
	}
	d.inside.Add(1)
	return d
}

// longestInside is how long requests may keep a lease whose worker has returned without
// having been told to.
const longestInside = 10 * time.Second

// during calls a worker, and keeps a door open meanwhile. It returns what that returns,
// once the requests inside were served too. If the worker panics it does not wait: then
// the lease ends, and so do the contexts of the requests.
func (h *hub) during(ctx context.Context, partition int, l lease, work func() error) error {
	d, closed := &door{lease: l}, make(chan struct{})
	h.set(func() { h.doors[partition] = d })
	shut := sync.OnceFunc(func() {
		h.set(func() {
			if h.doors[partition] == d {
				delete(h.doors, partition)
			}
		})
	})
	defer shut()
	err := work()
	shut()
	go func() { defer close(closed); d.inside.Wait() }()
	select {
	case <-closed:
		return err
	case <-ctx.Done(): // ReleaseTimeout bounds the rest
	case <-time.After(longestInside):
		if ctx.Err() == nil {
			return err
		}
	}
	<-closed
	return err
}

// pause is the time between two tries after an error that trying again does not
// help.
const pause = 5 * time.Second

// follow calls set with all that observe yields, until ctx ends or what is observed is
// closed.
func follow[T any](ctx context.Context, observe func(context.Context) iter.Seq2[T, error], set func(T, error)) {
	for {
		var last error
		for seen, err := range observe(ctx) {
			last = err
			set(seen, err)
		}
		if ctx.Err() != nil || errors.Is(last, elector.ErrClosed) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}
