package partition

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// A follower reads the plan and the seats here: when, which, and what it notes of them.

// reach makes reads of all seats come to those that partitions name, as long as these wait.
func (f *follower) reach() {
	now := f.group.now()
	f.mutex.Lock()
	waits := now-f.asked <= 2*f.group.challenge()
	if !waits {
		f.named = 0
	}
	named := f.named
	f.mutex.Unlock()
	switch {
	case named > f.top:
		f.top, f.beyond, f.seatsAt = named, true, now
	case f.beyond && !waits:
		f.beyond, f.top = false, f.s.own.Seat
		if p := f.group.known; p != nil {
			f.top = max(f.top, p.top())
		}
	}
}

// watch passes the plan on when it changes, as far as the store reports that, until ctx
// ends.
func (f *follower) watch(ctx context.Context) {
	f.group.watchPlan(ctx, func(r *backends.Record) {
		live := r != nil
		if !live {
			r = &backends.Record{} // older than any: it is read
		}
		f.tell(func(c *commission) { c.live, c.push = live, r })
	})
}

// takePushed takes the plan that Watch has shown last, or has it read.
func (f *follower) takePushed() {
	f.mutex.Lock()
	r := f.push
	f.push = nil
	f.mutex.Unlock()
	switch {
	case r == nil:
	case r.Token < f.record.Token || !r.Exists(): // it may be late
		f.planAt = 0
	default:
		f.takePlan(backends.Outcome{Record: *r})
	}
}

// readSeats reads the plan, and all seats or those that follow in the plan.
func (f *follower) readSeats(ctx context.Context) {
	g := f.group
	now := g.now()
	var seats []int
	if now-f.latest > 2*f.every {
		f.steady = now // there was a gap
	}
	f.every = f.interval()
	if f.all {
		for i := range f.top + 2 {
			seats = append(seats, i)
		}
	} else {
		seats = f.following()
	}
	f.latest, f.seatsAt, f.seats = now, now+f.every, seats
	f.failing = !f.load(ctx, seats)
	if f.failing {
		f.steady = g.now()
		f.seatsAt = min(f.seatsAt, f.steady+g.options.RenewEvery)
		return
	}
	if f.all {
		f.count()
		f.counted, f.sight = now, g.now()
	} else {
		for _, i := range seats { // its holder may have renewed until then
			if free := f.snapshot(i).Free; free > g.now() {
				f.seatsAt = min(f.seatsAt, free)
			}
		}
	}
	f.mourn()
}

// interval is how often this member reads seats: a deputy less often, the further back it is in
// the plan; another member in the request that reads the plan, if that takes many names.
func (f *follower) interval() time.Duration {
	before, planned := f.rank(deputies)
	switch every := f.group.options.RenewEvery; {
	case !planned, f.mends != 0:
		return every
	case f.all:
		return every * time.Duration(min(before, deputies)+1)
	case f.many() && !f.reported().live:
		return every
	}
	return f.group.challenge() * 3 / 5
}

// load reads the plan and some seats, and more seats as long as the last one has a record.
// It reports whether all reads have worked.
func (f *follower) load(ctx context.Context, seats []int) (ok bool) {
	g := f.group
	every := g.options.RenewEvery
	_, planned := f.rank(0)
	f.mutex.Lock()
	if f.wish.leaving || !planned { // others wait for it
		every /= 4
	}
	f.planAt = g.now() + every
	if f.live {
		f.planAt = rule.Never // but for the reads of seats, which read it too
	}
	f.mutex.Unlock()
	outcomes := g.loadSeats(ctx, seats, g.planName())
	if ctx.Err() != nil {
		return false
	}
	ok = f.takePlan(outcomes[0])
	var fault error
	more := false
	for j, i := range seats {
		o := outcomes[j+1]
		f.foreign[i] = isForeign(o.Err)
		ok = ok && (o.Err == nil || f.foreign[i])
		if fault == nil {
			fault = o.Err
		}
		if (o.Record.Exists() || f.foreign[i]) && i > f.top {
			f.top = i
			more = j == len(seats)-1 && i+1 < maxSeats
		}
	}
	if len(seats) > 0 {
		f.complain("cannot read a seat", fault)
	}
	return (!more || f.load(ctx, []int{f.top + 1})) && ok
}

// takePlan takes what a read of the plan has shown.
func (f *follower) takePlan(o backends.Outcome) (ok bool) {
	g := f.group
	if f.complain("cannot read the plan", o.Err); o.Err != nil {
		return false
	}
	before := f.record
	f.read, f.record = true, o.Record
	if drained := drainedIn(o.Record); !slices.Equal(drained, f.drained) {
		f.drained, f.seatsAt = drained, 0
	}
	p, err := g.usable(o.Record)
	f.trouble = err
	f.complain("moves no partition", err)
	if p != nil {
		g.known = p
		f.top = max(f.top, p.top()) // a seat before it may have no record
		g.audit.Store(int64(p.audit))
	}
	changed := before.Attempt.Nonce != o.Record.Attempt.Nonce || before.Value != o.Record.Value // also if it was edited
	f.mutex.Lock()
	if changed || f.plan == nil {
		f.plan, f.id = p, o.Record.Attempt.Nonce
	}
	if err != nil && !isForeign(err) { // the number of partitions was changed
		f.refused = err
	}
	f.mutex.Unlock()
	if changed {
		f.seen, f.mends = g.now(), 0
		wake(f.s.woken)
	}
	return true
}

// count notes which members are ready. One whose seat this version does not know stays in the
// plan if it is there: otherwise versions that know it and others would plan in turn.
func (f *follower) count() {
	members, drained := map[int]int{}, map[int]int{}
	for i := range f.top + 1 {
		r := f.snapshot(i).Record
		if n, ok := parseNote(r); ok && !f.foreign[i] && !n.leaving && n.partitions == f.group.o.Partitions {
			if slices.Contains(f.drained, r.Holder) {
				drained[i] = n.weight
			} else {
				members[i] = n.weight
			}
		}
	}
	if len(members) == 0 {
		members = drained // no other member could own anything
	}
	others := len(members)
	if _, own := members[f.s.own.Seat]; own {
		others--
	}
	if p := f.group.known; p != nil {
		for _, at := range p.positions {
			if at.seat != noSeat && f.foreign[at.seat] {
				members[at.seat] = at.weight
			}
		}
	}
	if !maps.Equal(members, f.members) {
		f.members, f.changed = members, f.group.now()
	}
	f.mutex.Lock()
	f.alone = others == 0
	f.mutex.Unlock()
	wake(f.s.woken)
}
