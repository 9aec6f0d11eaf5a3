package partition

import (
	"context"
	"fmt"
	"strings"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// The records of a group: their names, how they are read and written, and what they hold.

// Election returns the name of a partition's record, as Lease.Election does: a resource's
// fences and guards need it.
func Election(group string, partition int) string { return fmt.Sprintf("%s.p.%d", group, partition) }

// Plan returns the name of the record that has a group's plan.
func Plan(group string) string { return group + ".plan" }

func (g *Group) seatName(number int) string  { return fmt.Sprintf("%s.seat.%d", g.name, number) }
func (g *Group) planName() string            { return Plan(g.name) }
func (g *Group) record(partition int) string { return Election(g.name, partition) }

// checkName checks that all names of the group's records are valid.
func checkName(name string) error {
	if err := backends.CheckName(name); err != nil {
		return err
	}
	return backends.CheckName(name + fmt.Sprintf(".seat.%d", maxSeats))
}

// fail adds the group and the store to an error; partition is -1 if it is not about one.
func (g *Group) fail(op string, partition int, err error) error {
	if err == nil {
		return nil
	}
	name := g.name
	if partition >= 0 {
		name = g.record(partition)
	}
	return &elector.Error{Op: op, Election: name, Store: g.store, Err: err}
}

// load reads one record.
func (g *Group) load(ctx context.Context, name string) (backends.Record, error) {
	o := g.requests.LoadAll(ctx, []string{name}, g.options.RequestTimeout)[0]
	return o.Record, o.Err
}

// swap makes one swap.
func (g *Group) swap(ctx context.Context, name string, prev, next backends.Record) error {
	return g.requests.SwapAll(ctx, []backends.Change{{Name: name, Prev: prev, Next: next}}, g.options.RequestTimeout)[0].Err
}

// newNonce names one write.
func (g *Group) newNonce() string { return fmt.Sprintf("%016x%016x", g.random(), g.random()) }

// trail returns what this process has seen of a partition's record. Most processes see few of
// them, so each is made when it is needed.
func (g *Group) trail(partition int) *rule.Trail {
	p := &g.trails[partition]
	if p.Load() == nil {
		p.CompareAndSwap(nil, new(rule.Trail))
	}
	return p.Load()
}

// isPlan reports whether a group has a plan, when this is its record.
func isPlan(r backends.Record) bool { return r.Exists() && !rule.Unconfirmed(r) }

// readPlan returns the plan that a record has.
func (g *Group) readPlan(r backends.Record) (*plan, error) {
	if form, _ := r.Extensions.Get(rule.PlanName); form != planForm {
		return nil, fmt.Errorf("%w: record %s: its extension %s is %.20q, not %q", elector.ErrForeignRecord, g.planName(), rule.PlanName, form, planForm)
	}
	if other := r.Extensions.Critical(rule.PlanName); other != "" {
		return nil, fmt.Errorf("%w: record %s: it has the critical extension %s, of a newer version", elector.ErrForeignRecord, g.planName(), other)
	}
	p, err := parsePlan(r.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: record %s: %v", elector.ErrForeignRecord, g.planName(), err)
	}
	return p, nil
}

// agrees returns an error if the group has another number of partitions.
func (g *Group) agrees(p *plan) error {
	if p.partitions == g.o.Partitions || g.o.Partitions == 0 {
		return nil
	}
	return fmt.Errorf("%w option: Partitions is %d, and the group has %d, as record %s shows; all processes must have the same number", elector.ErrInvalid, g.o.Partitions, p.partitions, g.planName())
}

// usable returns the plan in a record, if this process can share partitions by it; nil if the
// group has none.
func (g *Group) usable(r backends.Record) (*plan, error) {
	if !isPlan(r) {
		return nil, nil
	}
	p, err := g.readPlan(r)
	if err == nil {
		err = g.agrees(p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// planRecord returns the record of a plan that replaces another state.
func (g *Group) planRecord(before backends.Record, p *plan) backends.Record {
	r := backends.Record{
		Token: rule.Token(before.Token, 0, clock.Mark(g.clock).Wall), TTL: g.options.TTL, RenewEvery: g.options.RenewEvery,
		Attempt: backends.Attempt{Nonce: g.newNonce(), Sequence: 1}, Value: p.String(),
	}
	x, err := before.Extensions.Class('k').With(rule.PlanName, planForm)
	if err != nil { // no room
		x, _ = backends.Extensions("").With(rule.PlanName, planForm)
	}
	r.Extensions = x
	return r
}

// drainedName is the extension of the plan's record with the members that should own
// nothing. It is for balance alone.
const drainedName = "k_drained"

// drainedIn returns the IDs of the members that should own nothing.
func drainedIn(plan backends.Record) []string {
	text, _ := plan.Extensions.Get(drainedName)
	if text == "" {
		return nil
	}
	return annex.Split(text, strings.Count(text, " ")+1)
}

// withDrained returns the extensions of a plan with these members drained.
func withDrained(x backends.Extensions, ids []string) (backends.Extensions, error) {
	if len(ids) == 0 {
		return x.Without(drainedName), nil
	}
	return x.With(drainedName, annex.Join(ids...))
}

// watchPlan calls changed with the plan's record when that changes, and with nil when the
// store does not report changes any more, until ctx ends.
func (g *Group) watchPlan(ctx context.Context, changed func(*backends.Record)) {
	for ctx.Err() == nil {
		g.requests.Watch(ctx, g.planName(), func(r backends.Record) { changed(&r) }) // the error is one that a read shows too
		changed(nil)
		g.wait(ctx, g.now()+g.options.RenewEvery, nil)
	}
}

// A note is what a member publishes as the value of its seat.
type note struct {
	leaving    bool
	planned    bool // it has seen a plan of the group
	partitions int
	weight     int
	whole      string // the plan of whose partitions it has seen all records: see founding; may be empty
	value      string // Options.Elector.Value
}

// noteForm is the form of the text.
const noteForm = "1"

// String returns the text of the note.
func (m note) String() string {
	state, seen, whole := "ready", "new", m.whole
	if m.leaving {
		state = "leaving"
	}
	if m.planned {
		seen = "planned"
	}
	if whole == "" {
		whole = "-"
	}
	return fmt.Sprintf("%s %s %s %d %d %s %s", noteForm, state, seen, m.partitions, m.weight, whole, m.value)
}

// maxValue bounds Options.Elector.Value: the rest of the seat's value is the member's note.
const maxValue = backends.MaxText - 96

// parseNote returns the note of a seat's holder. It returns false if there is none: the
// seat is vacant, its holder has not written a second time, or it is no member.
func parseNote(r backends.Record) (m note, ok bool) {
	fields := strings.SplitN(r.Value, " ", 7)
	if r.Vacant() || len(fields) != 7 || fields[0] != noteForm {
		return note{}, false
	}
	m = note{leaving: fields[1] == "leaving", planned: fields[2] == "planned", partitions: number(fields[3]), weight: number(fields[4]), value: fields[6]}
	if fields[5] != "-" {
		m.whole = fields[5]
	}
	return m, m.String() == r.Value && m.partitions >= 1 && m.weight >= 1 && m.weight <= maxWeight
}
