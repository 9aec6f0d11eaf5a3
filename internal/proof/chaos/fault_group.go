package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/raw"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/internal/rule"
)

// groupFaults change the records of a group by hand, and kill its oldest half.
//
// Left out is what no lease can survive, by docs/design-partitions.md:
//
//   - a seat that is emptied, or whose TTL is lowered: it reports a lease as over
//     which is valid;
//   - a partition that is emptied: it reports that its owner has given it up;
//   - a seat that is brought back and removed again within C: two changes of seats by
//     hand are 2C apart;
//   - a founding plan that is put back, and a partition that is deleted while the plan
//     is founding: it is free then.
//
// So is a partition that is put back to a state which names another member that lives: no
// process takes it before that member's seat ends.
//
// A partition that is put back is there: a member that has not seen the later owner
// may take it, until that owner's next audit. The checker excuses that.
var groupFaults = []Fault{
	halfFault,
	seatFault("seat: deleted", erase),
	seatFault("seat: rolled back", putBack),
	seatFault("seat: garbage", garble),
	seatFault("seat: value changed", func(ctx context.Context, g *group, name string) error {
		return g.alter(ctx, name, func(x *backends.Record) error { x.Value = "by hand"; return nil })
	}),
	seatFault("seat: critical extension", bar),
	{Name: "seat: request to resign", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		g := r.group
		seat, err := g.victimSeat(ctx)
		if err != nil {
			return err
		}
		return g.requestResign(ctx, seat)
	}},
	planFault("plan: deleted", erase),
	planFault("plan: rolled back", putBack),
	planFault("plan: garbage", garble),
	planFault("plan: edited", func(ctx context.Context, g *group, name string) error {
		// One member has all partitions, until the others see that they are left out.
		seat, err := g.victimSeat(ctx)
		if err != nil {
			return err
		}
		return g.alter(ctx, name, func(x *backends.Record) error {
			last := strings.LastIndex(x.Value, " ")
			x.Value = fmt.Sprintf("%s %d", x.Value[:max(0, last)], seat)
			return nil
		})
	}),
	{Name: "partition: deleted", on: hasRecords, takes: 4, strike: func(ctx context.Context, r *Round) error {
		n := r.random.IntN(r.group.partitions)
		return errors.Join(r.group.removePartition(ctx, n), r.group.rewritten(ctx, n))
	}},
	{Name: "partition: deleted, and its owner killed", on: hasRecords, takes: 10, missing: true, strike: func(ctx context.Context, r *Round) error {
		v, err := r.victim()
		if err != nil {
			return err
		}
		all := r.leads(v)
		if len(all) == 0 {
			return errMissed
		}
		n := r.group.number(all[r.random.IntN(len(all))])
		return errors.Join(r.group.removePartition(ctx, n), v.kill(), r.start(v))
	}},
	{Name: "partition: rolled back", on: hasRecords, takes: 10, missing: true, strike: func(ctx context.Context, r *Round) error {
		return r.group.rollBackPartition(ctx)
	}},
	{Name: "partition: garbage", on: hasRecords, takes: 7, strike: func(ctx context.Context, r *Round) error {
		g := r.group
		n := r.random.IntN(g.partitions)
		e := history.Event{Election: g.partition(n), Kind: history.Spoiled, Before: history.BootTime()}
		if err := insist(ctx, func() error { return g.spoil(ctx, g.partition(n)) }); err != nil {
			return err
		}
		e.At = history.BootTime()
		g.tell(e)
		// An audit sees it.
		return errors.Join(r.last(ctx, 1.7, 2.5), g.removePartition(ctx, n), g.rewritten(ctx, n))
	}},
	{Name: "partition: critical extension", on: hasRecords, takes: 7, strike: func(ctx context.Context, r *Round) error {
		g := r.group
		n := r.random.IntN(g.partitions)
		defer r.breaks("partition: critical extension", "")()
		return bar(ctx, g, g.partition(n))
	}},
}

// GroupFaults returns all that can be had at the place in a group: those of its records,
// and those of processes, the network and the store.
func GroupFaults(p *Place) (records, others []Fault) {
	for _, f := range groupFaults {
		if f.on(p) {
			records = append(records, f)
		}
	}
	for _, f := range Faults(p) {
		switch kind, _, _ := strings.Cut(f.Name, ": "); {
		case kind == "record" || kind == pause || strings.HasPrefix(f.Name, "request to resign"):
		case p.store != nil && p.store.Kind == stores.GCS && (f.Name == "store: restart" || f.Name == "store: kill -9"):
			// It may lose writes that it has acknowledged, which no lease can survive.
		default:
			others = append(others, f)
		}
	}
	return records, others
}

// seatFault changes the seat of a member.
func seatFault(name string, change func(context.Context, *group, string) error) Fault {
	return Fault{Name: name, on: hasRecords, strike: func(ctx context.Context, r *Round) error {
		g := r.group
		rest := time.Until(g.seat.Add(2 * g.rules().Wait))
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		seat, err := g.victimSeat(ctx)
		if err != nil {
			return err
		}
		defer r.breaks(name, "")()
		defer func() { g.seat = time.Now() }()
		return change(ctx, g, g.seatName(seat))
	}}
}

func planFault(name string, change func(context.Context, *group, string) error) Fault {
	return Fault{Name: name, on: hasRecords, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks(name, "")()
		return change(ctx, r.group, r.group.plan())
	}}
}

// victimSeat returns the seat of a member.
func (g *group) victimSeat(ctx context.Context) (seat int, err error) {
	v, err := g.victim()
	if err != nil {
		return 0, err
	}
	err = insist(ctx, func() error {
		members, err := g.asked.Members(ctx)
		for _, m := range members {
			if m.ID == v.name {
				seat = m.Seat
				return nil
			}
		}
		if err == nil {
			err = errMissed // it has none just now
		}
		return err
	})
	return seat, err
}

// requestResign asks the holder of a seat to leave.
func (g *group) requestResign(ctx context.Context, seat int) error {
	limited, cancel := context.WithTimeout(ctx, 2*g.rules().TTL)
	defer cancel()
	e, err := elector.Open(limited, g.place.URL(func(address string) string { return address }), g.seatName(seat), &elector.Options{ID: "campaign", Logger: quiet})
	if err != nil {
		return err
	}
	defer e.Close()
	return g.move(ctx, e, "")
}

// erase deletes a record.
func erase(ctx context.Context, g *group, name string) error {
	if err := insist(ctx, func() error { return g.place.records.Delete(ctx, name) }); err != nil {
		return fmt.Errorf("deleting the record: %w", err)
	}
	return nil
}

// putBack writes a state that a record had before.
func putBack(ctx context.Context, g *group, name string) error {
	all := g.states[name]
	if len(all) == 0 {
		return errMissed // it is young
	}
	old := all[g.random.IntN(len(all))]
	return insist(ctx, func() error { return g.place.records.Put(ctx, name, old) })
}

// garble makes a record unreadable for a while.
func garble(ctx context.Context, g *group, name string) error {
	if err := insist(ctx, func() error { return g.spoil(ctx, name) }); err != nil {
		return err
	}
	return errors.Join(g.last(ctx, 0.5, 2), erase(ctx, g, name))
}

// alter changes something in a record.
func (g *group) alter(ctx context.Context, name string, change func(*backends.Record) error) error {
	return insist(ctx, func() error {
		_, err := raw.Edit(ctx, g.place.records, name, func(x *backends.Record) error {
			if x.Token == 0 {
				return errMissed
			}
			return change(x)
		})
		return err
	})
}

// bar sets an unknown critical extension, and takes it away again.
func bar(ctx context.Context, g *group, name string) error {
	err := g.alter(ctx, name, func(x *backends.Record) (err error) {
		x.Extensions, err = x.Extensions.With("c_chaos", fmt.Sprintf("%016x", g.random.Uint64()))
		return err
	})
	if err != nil {
		return err
	}
	err = g.last(ctx, 1.7, 2.5)
	return errors.Join(err, g.alter(ctx, name, func(x *backends.Record) error {
		x.Extensions = without(x.Extensions, "c_chaos")
		return nil
	}))
}

func (g *group) removePartition(ctx context.Context, n int) error {
	e := history.Event{Election: g.partition(n), Kind: history.Removed, Before: history.BootTime()}
	err := erase(ctx, g, g.partition(n))
	e.At = history.BootTime()
	g.tell(e)
	return err
}

// rewritten waits until a partition has a record again.
func (g *group) rewritten(ctx context.Context, n int) error {
	limited, cancel := context.WithTimeout(ctx, g.rules().Audit)
	defer cancel()
	for limited.Err() == nil {
		content, err := g.place.records.Get(limited, g.partition(n))
		if err == nil && content != nil {
			return nil
		}
		g.pause(limited)
	}
	return nil // its owner may have lost it: calm waits for the next one
}

// rollBackPartition puts back a partition's record of an earlier owner, and waits until
// the present owner has seen it.
func (g *group) rollBackPartition(ctx context.Context) error {
	for range 2 {
		for _, n := range g.random.Perm(g.partitions) {
			name := g.partition(n)
			old, x, err := g.earlier(ctx, name)
			if err != nil {
				return err
			}
			if old == nil {
				continue
			}
			position := g.log.Position()
			e := history.Event{Election: name, Kind: history.Restored, Token: elector.Token(x.Token), Holder: x.Holder, Before: history.BootTime()}
			if err := insist(ctx, func() error { return g.place.records.Put(ctx, name, old) }); err != nil {
				return err
			}
			e.At = history.BootTime()
			g.tell(e)
			limited, cancel := context.WithTimeout(ctx, g.rules().Audit)
			defer cancel()
			g.log.Wait(limited, position, "the owner to see it", func(e history.Event) bool { return e.Election == name && e.Kind == history.Ended })
			return nil
		}
		// All partitions of one process get another owner.
		v, err := g.victim()
		if err != nil {
			return err
		}
		if err := errors.Join(v.kill(), g.start(v), g.calm(ctx)); err != nil {
			return err
		}
	}
	return errMissed
}

// earlier returns a state of a partition's record that names an earlier owner whose seat
// has another holder now, nil if there is none.
func (g *group) earlier(ctx context.Context, name string) (content []byte, x backends.Record, err error) {
	living := map[string]bool{}
	for i := range 2 * candidates {
		seat, err := g.record(ctx, g.seatName(i))
		if err != nil {
			return nil, x, err
		}
		living[seat.Attempt.Nonce] = living[seat.Attempt.Nonce] || !seat.Vacant()
	}
	now, err := g.record(ctx, name)
	if err != nil || now.Vacant() {
		return nil, x, err
	}
	for _, i := range g.random.Perm(len(g.states[name])) {
		content := g.states[name][i]
		x, err := g.place.records.Decode(name, content)
		if err != nil {
			return nil, x, err
		}
		in, err := rule.Holder(x)
		if err == nil && x.Token < now.Token && !living[in.Nonce] {
			return content, x, nil
		}
	}
	return nil, x, nil
}

// number returns the number of the partition with an office's name.
func (g *group) number(office string) int {
	return slices.IndexFunc(g.Round.offices, func(o history.Election) bool { return o.Name == office })
}
