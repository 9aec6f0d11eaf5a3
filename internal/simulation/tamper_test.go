package simulation

import (
	"time"

	"github.com/elector-go/elector/backends"
)

// tamper changes the record as people and other processes do, or a wall clock.
func (x *wild) tamper(d *dice, n *node) {
	kind := holderEmptied + faultKind(d.below(int(wallFar+1-holderEmptied)))
	c := x.w.check
	var change func(*backends.Record) bool
	switch kind {
	case holderEmptied:
		change = d.empty
	case ttlLowered:
		change = d.lower
	case intervalChanged:
		change = d.hasten
	case valueChanged:
		change = d.scribble
	case criticalAdded:
		change = d.extend("c_")
		length := d.between(0, 2*x.ttl)
		time.AfterFunc(length, func() { c.edit(strip("c_")) })
	case keptAdded:
		change = d.extend("k_")
	case termAdded:
		change = d.extend("t_")
	case keptRemoved:
		change = strip("k_")
	case termRemoved:
		change = strip("t_")
	case resignRequested:
		x.request(d.below(20), d.between(x.ttl/20, x.ttl/4))
		change = d.request
	case resignAsked:
		change = d.asks
	case successorNamed:
		change = d.names
	case bidForged:
		change = d.forges
	case bidDoubled:
		change = d.doubles
	case bidStale:
		change = x.stale
	case creationAgain:
		x.arm()
		return // it is counted when it has happened
	case wallFar:
		n.machine.step(d.between(-100*time.Hour, 100*time.Hour))
		x.hit(kind, n)
		return
	}
	if c.edit(change) {
		x.hit(kind, nil)
	}
}

// request asks the leader to resign so many times more.
func (x *wild) request(times int, pause time.Duration) {
	if times == 0 {
		return
	}
	time.AfterFunc(pause, func() {
		if x.calmed() {
			return
		}
		if x.w.check.edit(newDice(x.w.seed, uint64(x.w.now()), 21).request) {
			x.hit(resignRequested, nil)
		}
		x.request(times-1, pause)
	})
}

// arm deletes the record, and makes the next write that creates it be applied
// late: after two more deletions.
func (x *wild) arm() {
	if !x.raw {
		return
	}
	x.mutex.Lock()
	x.armed = true
	x.mutex.Unlock()
	x.delete()
}

func (x *wild) delete() {
	if x.w.store.Get(election) != nil && !x.calmed() {
		x.hit(recordVanished, nil)
		x.w.check.spoil(nil)
	}
}

// creation draws the trip of a write that creates the record.
func (x *wild) creation() (trip, bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.calm || !x.armed {
		return trip{}, false
	}
	x.armed = false
	d := newDice(x.w.seed, uint64(x.w.now()), 14)
	first := d.between(x.ttl/4, 2*x.ttl)
	second := first + d.between(x.ttl/4, 2*x.ttl)
	time.AfterFunc(first, x.delete)
	time.AfterFunc(second, x.delete)
	return trip{out: second + d.between(0, x.ttl/4), breaks: d.between(1, x.timeout/50)}, true
}
