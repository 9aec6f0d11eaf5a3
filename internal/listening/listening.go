// Package listening lets all Watches of a backend share one connection, on which the
// store sends the names of the records that have changed.
package listening

import (
	"cmp"
	"context"
	"sync"
)

// A Hub has the Watches of a backend.
type Hub struct {
	// Listen connects, calls ready when no change is missed any more, and then wake with
	// the name in each message, until the connection is lost or ctx ends. It calls ready
	// once.
	Listen func(ctx context.Context, ready func(), wake func(name string)) error

	mutex   sync.Mutex
	current *connection // nil, or ended, while no Watch runs
}

// A connection is not repaired: when it is lost, all its Watches end, and the next Watch
// makes another.
type connection struct {
	ctx     context.Context
	end     context.CancelFunc
	ready   chan struct{}                     // closed when no change is missed any more
	gone    chan struct{}                     // closed when Listen has returned, for err
	err     error                             // why it ended
	dropped error                             // why Drop ended it, guarded by the Hub's mutex
	all     map[string]map[chan struct{}]bool // the Watches by name; one is what wakes it
}

// Watch calls read when the Hub listens, and each time the record may have changed since,
// until ctx ends, the connection is lost or read returns an error. It returns why.
func (h *Hub) Watch(ctx context.Context, name string, read func() error) error {
	wake := make(chan struct{}, 1) // holds a value when the record is to be read
	c := h.join(name, wake)
	defer h.leave(c, name, wake)
	ready := c.ready
	for {
		select {
		case <-ready: // first, so that no change is lost between listening and reading
			ready = nil
		case <-wake:
		case <-c.gone:
			return c.err
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := read(); err != nil {
			return err
		}
	}
}

// Wait blocks until the connection has ended, if there is one.
func (h *Hub) Wait() {
	h.mutex.Lock()
	c := h.current
	h.mutex.Unlock()
	if c != nil {
		<-c.gone
	}
}

// Drop ends the connection, if there is one, and its Watches with why. The next Watch makes
// another.
func (h *Hub) Drop(why error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if c := h.current; c != nil && c.ctx.Err() == nil {
		c.dropped = why
		c.end()
	}
}

func (h *Hub) join(name string, wake chan struct{}) *connection {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.current == nil || h.current.ctx.Err() != nil {
		c := &connection{ready: make(chan struct{}), gone: make(chan struct{}), all: map[string]map[chan struct{}]bool{}}
		c.ctx, c.end = context.WithCancel(context.Background())
		h.current = c
		go func() {
			err := h.Listen(c.ctx, func() { close(c.ready) }, func(name string) { h.wake(c, name) })
			h.mutex.Lock()
			c.err = cmp.Or(c.dropped, err)
			h.mutex.Unlock()
			c.end()
			close(c.gone)
		}()
	}
	if h.current.all[name] == nil {
		h.current.all[name] = map[chan struct{}]bool{}
	}
	h.current.all[name][wake] = true
	return h.current
}

// leave ends the connection with its last Watch, and waits until it has ended.
func (h *Hub) leave(c *connection, name string, wake chan struct{}) {
	h.mutex.Lock()
	if delete(c.all[name], wake); len(c.all[name]) == 0 {
		delete(c.all, name)
	}
	last := len(c.all) == 0
	if last {
		c.end()
	}
	h.mutex.Unlock()
	if last {
		<-c.gone
	}
}

// wake wakes the Watches of a name.
func (h *Hub) wake(c *connection, name string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for wake := range c.all[name] {
		select {
		case wake <- struct{}{}:
		default: // it is about to read anyway
		}
	}
}
