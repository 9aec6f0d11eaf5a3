package setup

import (
	"context"
	"sync"
)

// A Maker makes connections, one at a time: see [Tries].
type Maker[C any] struct {
	tries *Tries
	close func(C)

	mutex   sync.Mutex
	spare   []C // made, and not taken
	stopped bool
}

// New returns a Maker. make makes a connection, until its context ends; close ends one that
// nobody has taken.
func New[C any](make func(context.Context) (C, error), close func(C)) *Maker[C] {
	m := &Maker[C]{close: close}
	m.tries = NewTries(Patience, func(ctx context.Context) error {
		c, err := make(ctx)
		if err == nil && !m.keep(c) {
			close(c)
		}
		return err
	})
	return m
}

// Get returns a connection, which the caller owns. It waits until one is made, a try fails or
// ctx ends; a try goes on then, and what it makes is for the next call.
func (m *Maker[C]) Get(ctx context.Context) (C, error) {
	for {
		if c, ok := m.take(); ok {
			return c, nil
		}
		if err := m.tries.Do(ctx); err != nil {
			var none C
			return none, err
		}
	}
}

// keep reports whether the Maker was not stopped.
func (m *Maker[C]) keep(c C) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.stopped {
		m.spare = append(m.spare, c)
	}
	return !m.stopped
}

func (m *Maker[C]) take() (c C, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	last := len(m.spare) - 1
	if last < 0 {
		return c, false
	}
	c, m.spare = m.spare[last], m.spare[:last]
	return c, true
}

// Drop ends the connections that nobody has taken.
func (m *Maker[C]) Drop() {
	m.mutex.Lock()
	spare := m.spare
	m.spare = nil
	m.mutex.Unlock()
	for _, c := range spare {
		m.close(c)
	}
}

// Stop ends the Maker: a try, soon, and the connections that nobody has taken. It does not
// wait for the try.
func (m *Maker[C]) Stop() {
	m.mutex.Lock()
	m.stopped = true
	m.mutex.Unlock()
	m.tries.Stop()
	m.Drop()
}
