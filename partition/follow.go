package partition

import (
	"context"
)

// follow runs until ctx ends.
func (f *follower) follow(ctx context.Context) {
	g := f.group
	for ctx.Err() == nil {
		f.takePushed()
		f.reach()
		if all := f.watchesAll(); all && !f.all {
			f.all, f.seatsAt = true, g.now()
		} else {
			f.all = all
		}
		switch now := g.now(); {
		case f.seatsAt <= now:
			f.readSeats(ctx)
		case f.planAt <= now:
			f.load(ctx, nil)
		}
		f.publish(ctx)
		f.govern(ctx)
		g.wait(ctx, min(f.seatsAt, f.planAt, f.nextFree(), f.due()), f.woken)
	}
}

// publish writes this member's note, if it has changed.
func (f *follower) publish(ctx context.Context) {
	g := f.group
	f.mutex.Lock()
	n := f.wish
	f.mutex.Unlock()
	n.planned, n.partitions, n.weight, n.value = g.known != nil, g.o.Partitions, g.o.Weight, g.o.Elector.Value
	if n == f.published || !f.read {
		return
	}
	// Where writes must be apart, this one may have to wait, for at most a renewal interval.
	ctx, cancel := g.clock.WithTimeout(ctx, g.options.RenewEvery+g.options.RequestTimeout)
	defer cancel()
	err := f.s.lease.Proclaim(ctx, n.String())
	if f.complain("cannot write its seat", err); err != nil {
		return
	}
	if f.published.leaving != n.leaving || f.published.weight == 0 {
		f.seatsAt = 0 // its own note counts too
	}
	f.published = n
}
