package simulation

import (
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
)

// An office is one lease, from its acquisition to its end.
type office struct {
	n       *node
	lease   *elector.Lease
	token   uint64
	nonce   string
	run     bool          // it is of Run
	working bool          // its worker has not returned
	over    bool          // it was seen not to be valid
	overAt  time.Time     // since when a timer has had the time to say so
	seen    map[*node]int // who had been shown it before which store fault
	exposed bool          // a store fault has hit it

	panicked bool         // its worker has
	alive    atomic.Int64 // monotonic, when the worker last called Check
}

// expose notes that the store has lost a lease's record, and who had been shown
// it before.
func (c *checker) expose(o *office) {
	o.exposed = true
	if c.live.Token >= o.token {
		return // an older loss let tokens fall: no check is possible
	}
	for _, n := range c.w.all() {
		if n.witness.shown(o.nonce, 0) && !n.witness.shown(o.nonce, c.faults) {
			o.seen[n] = c.faults
		}
	}
}

// acquired checks a lease that a node has just won against all others.
func (c *checker) acquired(n *node, l *elector.Lease) *office {
	c.sample()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	nonce := n.witness.won(uint64(l.Token()))
	o := &office{n: n, lease: l, token: uint64(l.Token()), nonce: nonce, seen: map[*node]int{}}
	o.live()
	if c.stopped {
		return o
	}
	c.elections++
	_, known := n.witness.since(nonce)
	n.log("leads with token %d for %v", l.Token(), l.Remaining())
	if !known {
		c.w.broken("guarantee 2", "%s leads with token %d and no answer has told it so", n.name, l.Token())
	}
	if c.live.Attempt.Nonce != nonce {
		c.expose(o) // the store has lost it since it took the write
	}
	for _, other := range c.leases {
		asked := other.n.options.StallTimeout == 0 && !other.n.machine.stopped() // Check is a sign of life
		if !c.beyond && (other.lease.Remaining() > 0 || asked && valid(other.lease)) && !c.mayOverlap(other, o) {
			c.w.broken("guarantee 1", "two valid leases: %s with token %d while %s holds token %d for %v more", n.name, l.Token(), other.n.name, other.token, other.lease.Remaining())
		}
	}
	c.leases = append(c.leases, o)
	if len(c.leases) > 64 {
		c.leases = c.leases[1:]
	}
	return o
}

// live notes a sign of life of the worker.
func (o *office) live() { o.alive.Store(int64(o.n.machine.moment().mono)) }

// mayOverlap reports whether two leases are excused, the latter of which has just
// been acknowledged; the store may have taken it first.
func (c *checker) mayOverlap(other, o *office) bool {
	return c.excused(other, o.n) || c.applied[other.nonce] > c.applied[o.nonce] && c.excused(o, other.n)
}

// excused reports whether something is why n leads besides o: o is blind to a
// suspend; or o's record was edited, which o finds out by its next
// renewal, see passesOn; or n had not seen o's record before the store lost it,
// or took over from a node of which that is true.
func (c *checker) excused(o *office, n *node) bool {
	if o.blind() {
		c.unseen++
		return true
	}
	if c.edited[o.nonce] {
		c.byHand++
		return true
	}
	if !o.exposed {
		return false
	}
	if o.seen[n] == c.faults && c.since <= 1 {
		return false
	}
	c.stray++
	return true
}

// sample checks all leases at this instant.
func (c *checker) sample() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.stopped {
		return
	}
	for _, o := range c.leases {
		left := o.lease.Remaining()
		at, _ := o.n.witness.since(o.nonce)
		most := holds(o.n) - (o.n.machine.moment().boot - at.boot)
		if left == 0 {
			o.over = o.over || most <= 0 // a wall clock may have jumped, and jump back
			c.toldInTime(o)
			continue
		}
		if o.over && !o.blind() {
			c.w.broken("guarantee 2", "%s's lease with token %d is valid again after its end", o.n.name, o.token)
		}
		if left > most+tolerance && !o.blind() {
			c.w.broken("guarantee 2", "%s's lease with token %d is valid for %v more, %v longer than its last acknowledged write allows", o.n.name, o.token, left, left-most)
		}
		if at := o.n.witness.editedAt(o.nonce); at != 0 && c.w.now() > at+time.Millisecond {
			c.w.broken("rec/edited", "%s's lease with token %d is valid %v after a read has shown that its record was changed", o.n.name, o.token, c.w.now()-at)
		}
		if stall := o.n.options.StallTimeout; stall > 0 && o.n.storm != nil && !o.blind() {
			silent := o.n.machine.moment().mono - time.Duration(o.alive.Load())
			if silent > stall+2*holds(o.n) { // once more, as a renewal may be repeated at once
				c.w.broken("ren/stall", "%s's lease with token %d is valid %v after its worker called Check", o.n.name, o.token, silent)
			}
		}
	}
}

// tolerance is how far the monotonic clock may stand still before
// clock.Elapsed asks the boot-time clock too, and some.
const tolerance = 2 * time.Millisecond

// blind reports whether the lease's machine was suspended and its wall clock
// set back by just as much, so that the two agree and clock.Elapsed has no
// reason to ask the boot-time clock.
func (o *office) blind() bool {
	at, _ := o.n.witness.since(o.nonce)
	now := o.n.machine.moment()
	mono, wall, boot := now.mono-at.mono, now.wall-at.wall, now.boot-at.boot
	return (wall-mono).Abs() <= tolerance && boot-mono > tolerance
}

func holds(n *node) time.Duration {
	return n.options.TTL - time.Duration(float64(n.options.TTL)*rho(n))
}

// toldInTime checks that a lease's context has ended soon after H of the
// monotonic clock, on which timers run; after a suspend only Check knows
// earlier.
func (c *checker) toldInTime(o *office) {
	m := o.n.machine
	at, _ := o.n.witness.since(o.nonce)
	m.mutex.Lock()
	late := m.read().mono >= at.mono+holds(o.n)
	free := m.paused // when its timers could fire again
	if m.held.After(free) {
		free = m.held
	}
	m.mutex.Unlock()
	if !late || o.overAt.IsZero() {
		o.overAt = time.Now()
	}
	if free.After(o.overAt) {
		o.overAt = free
	}
	if late && o.lease.Context().Err() == nil && time.Since(o.overAt) > 50*time.Millisecond {
		c.w.broken("guarantee 6", "the context of %s's lease with token %d has not ended %v after the lease", o.n.name, o.token, time.Since(o.overAt))
	}
}
