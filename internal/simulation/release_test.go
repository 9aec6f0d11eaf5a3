package simulation

import (
	"errors"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// mayRelease checks that a lease's work is over before the store is told, and
// that the store may be told at all.
func (c *checker) mayRelease(n *node, next backends.Record) {
	w := &n.witness
	w.mutex.Lock()
	told := w.told[next.Attempt.Nonce]
	w.mutex.Unlock()
	if told {
		c.w.broken("res/told-once", "%s tells the store once more that token %d is free", n.name, next.Token)
	}
	for _, o := range c.leases {
		if o.n != n || o.nonce != next.Attempt.Nonce {
			continue
		}
		over := o.lease.Check()
		switch {
		case over == nil:
			c.w.broken("guarantee 8", "%s tells the store that token %d is free while its lease is valid", n.name, next.Token)
		case o.panicked:
			c.w.broken("res/told-once", "%s tells the store that token %d is free, and its worker panicked", n.name, next.Token)
		case o.working && (o.run || !errors.Is(over, elector.ErrResigned)):
			c.w.broken("res/told-once", "%s tells the store that token %d is free, and its worker has not returned", n.name, next.Token)
		}
	}
}

// answered notes what became of a write as the elector knows it.
func (c *checker) answered(n *node, prev, next backends.Record, err error) {
	unknown := err != nil && !errors.Is(err, backends.ErrConflict)
	if unknown {
		n.trail.answered(prev, next)
	}
	w := &n.witness
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !prev.Exists() && unknown {
		w.doubtful[next.Attempt.Nonce] = true
	}
	if err != nil && !isWord(prev, next) {
		w.unclear = next.Attempt.Nonce
	}
	if next.Vacant() && err == nil {
		w.told[next.Attempt.Nonce] = true
	}
}

// starts notes that a worker works under a lease.
func (c *checker) starts(o *office, run bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	o.working, o.run = true, run
}

// returns notes that it does not any more.
func (c *checker) returns(o *office) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	o.working = false
}

// panics notes that a worker does.
func (c *checker) panics(o *office) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	o.panicked = true
}
