package partition

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// Resize changes the number of partitions of a group that has no members now. Partitions
// that stay keep their tokens, also those that come back later.
//
// Partition numbers of keys change: see Of. So all processes must stop before, and start
// with the new number. If a member runs, Resize returns elector.ErrHeld, and names it. If
// one has crashed, Resize blocks until its lease has ended, for about TTL*(1+ClockDrift).
// It returns elector.ErrInvalid if there is no such group. o may be nil.
func Resize(ctx context.Context, backend backends.Backend, name string, partitions int, o *elector.Options) error {
	options := Options{Partitions: partitions}
	if o != nil {
		options.Elector = *o
	}
	options.Elector.Healthy = nil
	g, err := New(backend, name, &options)
	if err != nil {
		return err
	}
	defer g.Close()
	if ctx == nil {
		return g.fail("resize", -1, errNilContext)
	}
	return g.fail("resize", -1, g.resize(ctx))
}

func (g *Group) resize(ctx context.Context) error {
	load := func() (r backends.Record, p *plan, held []int, err error) {
		v, err := g.look(ctx)
		if v.state == nil {
			return r, nil, nil, err
		}
		if !isPlan(v.plan) {
			return r, nil, nil, fmt.Errorf("%w: the group has no plan %s, so there is nothing to change: its first members decide", elector.ErrInvalid, g.planName())
		}
		if p, err = g.readPlan(v.plan); err != nil {
			return r, nil, nil, err
		}
		seats := slices.Sorted(maps.Keys(v.seats))
		for i, o := range g.loadSeats(ctx, seats) {
			if o.Err != nil {
				return r, nil, nil, o.Err
			}
			if !o.Record.Vacant() {
				held = append(held, seats[i])
			}
		}
		return v.plan, p, held, nil
	}
	before, p, held, err := load()
	if err != nil || p.partitions == g.o.Partitions {
		return err
	}
	if len(held) > 0 {
		var over time.Duration // when all of their leases are, unless they renew
		for _, i := range held {
			s := g.seat(i).View.Snapshot()
			if s.Free == rule.Never {
				return fmt.Errorf("%w: record %s has the critical extension %s, of a newer version: resize with that version", elector.ErrHeld, g.seatName(i), rule.Critical(s.Record))
			}
			over = max(over, s.Free)
		}
		if !g.wait(ctx, over+1, nil) {
			return context.Cause(ctx)
		}
		if before, p, held, err = load(); err != nil {
			return err
		}
	}
	for _, i := range held {
		s := g.seat(i)
		if holder := s.View.Snapshot(); holder.Free > g.now() {
			return fmt.Errorf("%w: member %q runs, as record %s shows; stop all members first", elector.ErrHeld, holder.Record.Holder, g.seatName(i))
		}
		l, err := s.elector.TryCampaign(ctx)
		if err == nil {
			err = l.Release(ctx)
		}
		if err != nil {
			return err
		}
	}
	q := *p
	q.partitions, q.founding = g.o.Partitions, true // no lease is valid, so a missing record is free
	return g.swap(ctx, g.planName(), before, g.planRecord(before, &q))
}
