package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/operate"
)

// meddle calls the other methods of a node's Elector while it campaigns, leads
// and is told to stop.
func (x *wild) meddle(n *node) {
	for {
		d := newDice(x.w.seed, n.number, uint64(x.w.now()), 11)
		n.machine.sleep(n.life, d.between(x.ttl/10, 4*x.ttl))
		if n.life.Err() != nil || x.calmed() || n.crashed.Load() {
			return
		}
		ctx, cancel := n.machine.WithTimeout(n.life, d.between(0, 2*x.ttl))
		switch kind := askedLeader + faultKind(d.below(int(faultKinds-askedLeader))); kind {
		case askedLeader:
			x.hit(kind, n)
			n.ask(ctx)
		case observed:
			x.hit(kind, n)
			go n.watch(ctx)
			continue // until its time is over
		case proclaimed:
			if o := n.office.Load(); o != nil {
				x.hit(kind, n)
				o.live()
				o.lease.Proclaim(ctx, fmt.Sprintf("value %x", d.next()))
			}
		case resigned:
			x.hit(kind, n)
			n.resign(ctx)
		case asked, resignedTo, prioritySet:
			x.hit(kind, n)
			n.steer(ctx, kind, d)
		case pausedByHand, resumedByHand:
			x.hit(kind, n)
			x.operate(n, kind, d)
		case closedAnew:
			if d.chance(0.7) {
				break
			}
			x.hit(kind, n)
			n.closed.Store(true)
			n.elector.Close()
			if !n.crashed.Load() {
				x.another(n, d.between(time.Millisecond, x.ttl))
			}
			cancel()
			return
		}
		cancel()
	}
}

// operate pauses or resumes the election from another process on the node's machine, which
// only does that.
func (x *wild) operate(n *node, kind faultKind, d *dice) {
	m := x.w.join(n, func(m *node) {
		m.storm = x.storm
		m.options.TTL, m.options.ClockDrift = x.ttl, n.options.ClockDrift
		m.stream = x.streams(m, int(m.number))
	})
	if m == nil {
		return
	}
	length, patience := d.between(time.Millisecond, 2*x.ttl), d.between(0, 6*x.ttl)
	go func() {
		ctx, cancel := m.machine.WithTimeout(m.life, patience)
		defer cancel()
		if kind == pausedByHand {
			m.elector.Operator().Pause(ctx, operate.Pause{For: length, Reason: "by hand"})
		} else {
			m.elector.Operator().Resume(ctx)
		}
		m.elector.Close()
	}()
}

// ask asks who leads.
func (n *node) ask(ctx context.Context) {
	ctx, look := looking(ctx)
	if l, err := n.elector.Leader(ctx); err == nil && l.Lapsed {
		n.lapsed(look, uint64(l.Token))
	}
}

// watch observes who leads until its context ends.
func (n *node) watch(ctx context.Context) {
	ctx, look := looking(ctx)
	n.brief.Add(1)
	defer n.brief.Add(-1)
	last := uint64(0)
	for l, err := range n.elector.Observe(ctx) {
		if err != nil {
			return
		}
		if token := uint64(l.Token); token < last {
			n.w.broken("obs/monotonic", "%s observes token %d after %d", n.name, token, last)
		}
		last = uint64(l.Token)
		if l.Lapsed {
			n.lapsed(look, last)
		}
	}
}

// resign gives up what the node holds, and leaves it no lease if it says so.
func (n *node) resign(ctx context.Context) {
	before, held := n.elector.Token()
	if n.elector.Resign(ctx) != nil || held != nil {
		return
	}
	if after, err := n.elector.Token(); err == nil && after == before {
		n.w.broken("guarantee 8", "%s has resigned and still leads with token %d", n.name, after)
	}
}
