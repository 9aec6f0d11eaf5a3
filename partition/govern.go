package partition

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/internal/rule"
)

// govern replaces members that are gone, and writes the plan, if that is due.
func (f *follower) govern(ctx context.Context) {
	g := f.group
	f.depose(ctx)
	switch now := g.now(); {
	case f.due() > now:
	case f.counted < f.seen, f.sight < now-g.options.RenewEvery/2: // first look again
		f.seatsAt = 0
	default:
		f.write(ctx, f.wanted())
	}
}

// watchesAll reports whether this member reads all seats: a deputy, one that is not in
// the plan, one that leaves, one that waits for a seat which others may not know, and each
// one while the plan is gone, as newcomers may have the deputies' seats and not know it.
func (f *follower) watchesAll() bool {
	f.mutex.Lock()
	leaving, gone := f.wish.leaving, f.plan == nil && f.trouble == nil
	f.mutex.Unlock()
	before, planned := f.rank(deputies)
	return leaving || gone || f.beyond || !planned || before < deputies || f.mends != 0 && f.mends <= f.group.now()
}

// wanted returns the plan that should be, nil if this member cannot know it.
func (f *follower) wanted() *plan {
	g := f.group
	p := f.reported().plan
	switch {
	case f.trouble != nil || f.counted == 0 || len(f.members) == 0:
		return nil
	case p != nil:
		next := p.next(f.members)
		founding := p.founding && !f.allWhole(p)
		if next == p && (founding != p.founding || len(f.staying()) < len(f.drained)) {
			again := *p // settled, or without drained members that have left
			again.founding = founding
			return &again
		}
		return next
	case g.known != nil: // it was deleted
		again := *g.known
		again.founding = false
		return again.next(f.members)
	case f.anyPlanned(): // they know it
		return nil
	}
	return founded(g.o.Partitions, rule.Audit(g.options.TTL), f.members)
}

// anyPlanned reports whether a member has seen a plan.
func (f *follower) anyPlanned() bool {
	for i := range f.top + 1 {
		if n, ok := parseNote(f.snapshot(i).Record); ok && n.planned {
			return true
		}
	}
	return false
}

// allWhole reports whether all members of the plan have announced that all their
// partitions have a record.
func (f *follower) allWhole(p *plan) bool {
	for _, at := range p.positions {
		if at.seat == noSeat {
			continue
		}
		if n, ok := parseNote(f.snapshot(at.seat).Record); !ok || n.whole != f.id {
			return false
		}
	}
	return true
}

// due returns when to write a plan, Never if there is nothing to write. The seats must have
// been read after the present plan was, as its writer may know more.
func (f *follower) due() time.Duration {
	p := f.reported().plan
	w := f.wanted()
	if w == nil || w == p || f.failing || !f.all {
		f.pending = 0
		return rule.Never
	}
	if f.pending == 0 {
		f.pending = f.group.now()
	}
	settle := f.group.o.Settle
	if p != nil && maps.Equal(p.weights(), w.weights()) { // no change of members
		settle = 0
	}
	before, _ := f.rank(deputies) // it acts later than those
	late := time.Duration(before) * f.group.options.RenewEvery / 4
	return max(1, f.pause, min(f.changed+settle, f.pending+4*settle)+late)
}

// depose replaces the holders of seats that have not renewed for C: see rule.Snapshot.Free.
// It waits until reads have worked for two intervals: after an outage all seats look like
// that until their holders come back.
func (f *follower) depose(ctx context.Context) {
	g := f.group
	var due []int
	for _, i := range f.seats {
		if f.deposable(i) <= g.now() {
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		return
	}
	for i := range due { // others replace the same ones at the same time
		j := i + int(g.random()%uint64(len(due)-i))
		due[i], due[j] = due[j], due[i]
	}
	var replaced atomic.Int64
	for some := range slices.Chunk(due, mostDeposals) {
		f.replace(ctx, some, &replaced)
	}
	if replaced.Load() == 0 {
		return
	}
	f.seatsAt = 0
	if f.all {
		f.count()
	}
	f.changed = g.now() - g.o.Settle // a crash has been waited for
}

// replace replaces the holders of some seats at the same time, and counts those that are gone.
func (f *follower) replace(ctx context.Context, seats []int, replaced *atomic.Int64) {
	g := f.group
	g.loadSeats(ctx, seats) // another member may have replaced them
	var group sync.WaitGroup
	for _, i := range seats {
		seat, holder := g.seat(i), f.snapshot(i).Record.Holder
		if holder == "" {
			replaced.Add(1)
			continue
		}
		group.Go(func() {
			l, err := seat.elector.TryCampaign(ctx)
			if err != nil {
				return // another member was first, or the holder is back
			}
			replaced.Add(1)
			g.log.Warn("elector: a member of the group is gone; its partitions go to the others", "member", holder, "seat", i)
			if err := l.Release(ctx); err != nil {
				g.log.Warn("elector: the seat of a member that is gone is vacant only once its lease has ended", "seat", i, "error", err)
			}
		})
	}
	group.Wait()
}

// nextFree returns when the first seat can be replaced. It is in the future: see depose.
func (f *follower) nextFree() time.Duration {
	next := rule.Never
	for _, i := range f.seats {
		if at := f.deposable(i); at > f.group.now() {
			next = min(next, at)
		}
	}
	return next
}

// write replaces the plan, unless another member has.
func (f *follower) write(ctx context.Context, p *plan) {
	g := f.group
	next := g.planRecord(f.record, p)
	next.Extensions, _ = withDrained(next.Extensions, f.staying()) // no more than there were
	// What is written where there was no record is no plan until it is written once more.
	created := !f.record.Exists()
	if created {
		next.Extensions = rule.Created(next.Extensions)
	}
	err := g.swap(ctx, g.planName(), f.record, next)
	if isRefused(err) {
		f.complain("cannot write the plan", nil) // another member has
	} else {
		f.complain("cannot write the plan", err)
	}
	if err != nil {
		f.pause = g.now() + g.options.RenewEvery/4
	} else if before := f.reported().plan; !created && (before == nil || !maps.Equal(before.weights(), p.weights())) {
		g.log.Info("elector: the group has a new plan", "seats", slices.Sorted(maps.Keys(p.weights())))
	}
	f.load(ctx, nil)
}

// staying returns the drained members that have a seat.
func (f *follower) staying() (stay []string) {
	for i := range f.top + 1 {
		if holder := f.snapshot(i).Record.Holder; slices.Contains(f.drained, holder) && !slices.Contains(stay, holder) {
			stay = append(stay, holder)
		}
	}
	return stay
}
