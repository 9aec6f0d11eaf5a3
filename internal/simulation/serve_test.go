package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/elector-go/elector"
)

// serve campaigns and works, by Run or by Campaign, for as long as the node
// lives.
func (n *node) serve(run bool) {
	for n.life.Err() == nil {
		if run {
			n.elector.Run(n.life, n.worker(true))
			continue
		}
		l, err := n.elector.Campaign(n.life)
		if err == nil {
			n.worker(false)(l.Context(), l)
			l.Release(n.life)
		}
	}
}

// worker returns what a leader does until its context ends, or it has had
// enough; run is set if Run calls it.
func (n *node) worker(run bool) func(context.Context, *elector.Lease) error {
	return func(ctx context.Context, l *elector.Lease) error {
		c := n.w.check
		o := c.acquired(n, l)
		c.starts(o, run)
		defer c.returns(o)
		n.office.Store(o)
		d := newDice(n.w.seed, uint64(l.Token()), 5)
		enough := n.w.now() + d.between(0, 12*n.options.TTL)
		for ctx.Err() == nil && n.w.now() < enough {
			n.machine.sleep(ctx, d.between(0, n.options.TTL/2))
			o.live()
			l.Check()
			c.sample()
			if n.storm.wild != nil {
				n.storm.wild.disturb(ctx, o)
			}
		}
		// A renewal that has met a request to resign tells the store that first.
		time.Sleep(time.Microsecond)
		if d.chance(0.5) { // it takes its time to stop
			n.machine.sleep(n.w.Context(), d.between(0, n.options.TTL/2))
		}
		if n.storm.wild != nil {
			return n.storm.wild.end(o)
		}
		return nil
	}
}

// errPanic is what workers panic with.
var errPanic = errors.New("the worker panics")

// caught ends the panic of a worker. Any other one is a fault of the elector,
// after which nothing goes on: the seed is said before everything stops.
func (n *node) caught() {
	switch p := recover(); p {
	case nil, errPanic:
	default:
		fmt.Fprintf(os.Stderr, "seed %d: %s panics: %v\n%s", n.w.seed, n.name, p, n.w.history.tail(70))
		panic(p)
	}
}

// round campaigns once, by Run, Campaign or TryCampaign, and works if it leads.
func (x *wild) round(n *node, ctx context.Context, d *dice) {
	defer n.caught()
	var l *elector.Lease
	var err error
	switch d.below(3) {
	case 0:
		n.elector.Run(ctx, n.worker(true))
		return
	case 1:
		l, err = n.elector.Campaign(ctx)
	case 2:
		x.hit(triedOnce, n)
		n.brief.Add(1)
		l, err = n.elector.TryCampaign(ctx)
		n.brief.Add(-1)
	}
	switch {
	case err == nil:
		n.worker(false)(l.Context(), l)
		if x.calmed() || d.chance(0.8) {
			l.Release(ctx)
		}
	case errors.Is(err, elector.ErrBusy): // the last lease was not resigned
		n.elector.Resign(ctx)
	}
}

// serve campaigns and works in one way after the other, for as long as the node
// lives.
func (x *wild) serve(n *node) {
	for n.life.Err() == nil && !n.closed.Load() {
		d := newDice(x.w.seed, n.number, uint64(x.w.now()), 10)
		ctx, cancel := context.WithCancelCause(n.life)
		stop := func() bool { return true }
		if !x.calmed() && d.chance(0.3) {
			stop = n.machine.AfterFunc(d.between(0, 6*n.options.TTL), func() {
				if n.life.Err() == nil && !x.calmed() {
					x.hit(contextEnded, n)
					cancel(x.opaque(newDice(x.w.seed, n.number, uint64(x.w.now()), 23)))
				}
			})
		}
		x.round(n, ctx, d)
		stop()
		cancel(nil)
		n.machine.sleep(n.life, d.between(time.Millisecond, x.ttl/5))
	}
}

// disturb makes a worker stall, or panic in Run.
func (x *wild) disturb(ctx context.Context, o *office) {
	n := o.n
	d := newDice(x.w.seed, n.number, uint64(x.w.now()), 15)
	if x.calmed() || ctx.Err() != nil {
		return
	}
	if stall := n.options.StallTimeout; stall > 0 && d.chance(0.1) {
		x.hit(workerStalled, n)
		n.machine.sleep(ctx, stall+d.between(0, 2*n.options.TTL))
	}
	if d.chance(0.02) && o.run {
		x.hit(workerPanicked, n)
		x.w.check.panics(o)
		panic(errPanic)
	}
}

// end makes a worker linger, and returns its error, which may be anything.
func (x *wild) end(o *office) error {
	n := o.n
	d := newDice(x.w.seed, n.number, uint64(x.w.now()), 16)
	if !x.calmed() && d.chance(0.3) {
		x.hit(workerLingered, n)
		n.machine.sleep(n.life, d.between(0, 4*n.options.TTL))
	}
	x.mutex.Lock()
	if o.lease.Remaining() == 0 {
		x.farewell = o.lease.Check()
	}
	x.mutex.Unlock()
	if d.chance(0.5) {
		return x.opaque(d)
	}
	return nil
}
