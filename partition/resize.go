package partition

import (
	"context"
	"fmt"
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
	load := func() (backends.Record, *plan, []int, error) {
		r, err := g.load(ctx, g.planName())
		if err != nil {
			return r, nil, nil, err
		}
		if !isPlan(r) {
			return r, nil, nil, fmt.Errorf("%w: the group has no plan %s, so there is nothing to change: its first members decide", elector.ErrInvalid, g.planName())
		}
		p, err := g.readPlan(r)
		if err != nil {
			return r, nil, nil, err
		}
		held, err := g.held(ctx, p)
		return r, p, held, err
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

// held returns the seats that have a holder.
func (g *Group) held(ctx context.Context, p *plan) (held []int, err error) {
	top := 0
	for _, at := range p.positions {
		top = max(top, at.seat)
	}
	for i := 0; i <= top; i++ {
		o := g.loadSeats(ctx, []int{i})[0]
		if o.Err != nil {
			return nil, o.Err
		}
		if o.Record.Exists() {
			top = max(top, i+1)
		}
		if !o.Record.Vacant() {
			held = append(held, i)
		}
	}
	return held, nil
}
