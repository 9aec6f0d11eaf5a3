package simulation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/seats"
	"github.com/elector-go/elector/operate"
	"github.com/elector-go/elector/partition"
)

// A member that is paused for longer than C and deposed has no valid lease when it wakes,
// and its workers return before it begins anew.
func deposedAsleep(f *fleet) {
	all := f.together(2)
	var leases []*holding
	f.mutex.Lock()
	for _, list := range f.leases {
		for _, h := range list {
			if h.member == all[0] {
				leases = append(leases, h)
			}
		}
	}
	f.mutex.Unlock()
	all[0].machine.pause(3 * groupTTL)
	f.await(groupClaim+soon, "the other takes all", func() bool { return f.number(all[1]) == 4 })
	for _, l := range leases {
		if l.Check() == nil {
			f.broken("asleep", "%v is valid", l)
		}
	}
	f.settles(4 * soon)
}

// All lapse in an outage of the store, and one comes back first: the others find their
// seats, and hardly anything moves.
func allLapse(f *fleet) {
	all := f.together(3)
	plan := f.load("group.plan").Value
	for _, m := range all {
		m.wire.cut(true)
	}
	time.Sleep(2 * groupClaim)
	for i, m := range all {
		time.AfterFunc(time.Duration(i)*groupEvery*2/5, func() { m.wire.cut(false) })
	}
	f.settles(3 * soon)
	if after := f.load("group.plan").Value; after != plan || f.warned("a member of the group is gone") {
		f.broken("after an outage", "the plan was %q and is %q", plan, after)
	}
}

// One that comes back from an outage alone does not stay alone.
func aloneAfterOutage(f *fleet) {
	all := f.together(3)
	for _, m := range all {
		m.wire.cut(true)
	}
	time.Sleep(2 * groupClaim)
	all[1].wire.cut(false)
	f.await(groupClaim+3*soon, "it owns all", func() bool { return f.number(all[1]) == 6 })
	all[0].wire.cut(false)
	all[2].wire.cut(false)
	f.settles(3 * soon)
}

// A worker that never returns holds up nothing else: after ReleaseTimeout its lease ends,
// and C later its partition is another's.
func workerStays(f *fleet) {
	f.options.Elector.ReleaseTimeout = groupTTL / 2
	a := f.join(func(m *member, _ *partition.Options) { m.stays = f.options.Partitions - 1 })
	f.settles(soon)
	b := f.join(nil)
	begun := f.now()
	f.await(2*soon, "the others move at once", func() bool { return f.number(b) >= 1 })
	f.await(groupTTL/2+groupClaim+2*soon, "all move", func() bool { return f.number(a) == 2 && f.number(b) == 2 })
	if f.owned[f.options.Partitions-1]-begun < groupTTL/2+groupClaim {
		f.broken("a worker that stays", "its partition moved after %v", f.owned[f.options.Partitions-1]-begun)
	}
}

// A worker that fails again and again is called again by its owner, and nothing else knows.
func workerFails(f *fleet) {
	a := f.join(func(m *member, _ *partition.Options) { m.fails = true })
	f.await(soon, "it owns all", func() bool { return f.number(a) == 4 })
	before := f.counts["leases"]
	time.Sleep(20 * groupTTL)
	if f.counts["leases"] != before || !f.warned("the worker failed") {
		f.broken("a worker that fails", "%d leases began", f.counts["leases"]-before)
	}
}

// A seat is used by more incarnations than it names, before a partition of the first one is
// taken.
func manyIncarnations(f *fleet) {
	all := f.together(2)
	name := f.seat(all[0])
	all[0].crash()
	all[1].machine.pause(12 * groupClaim) // it does not look meanwhile
	for range 6 {
		o := elector.Options{TTL: groupTTL, Logger: slog.New(slog.DiscardHandler)}
		e, err := elector.New(seats.Backend{Backend: f.store.Handle(), Bind: func(seats.Parts) {}}, name, &o)
		if err != nil {
			f.Fatal(err)
		}
		l, err := e.Campaign(context.Background())
		if err != nil {
			f.Fatal(err)
		}
		l.Release(context.Background())
		e.Close()
	}
	f.settles(12*groupClaim + 4*soon)
}

// The first deputy and another member crash together: one C, and the rest have all.
func plannerCrashes(f *fleet) {
	all := f.together(4)
	f.await(soon, "the first seat", func() bool { return f.load("group.seat.0").Exists() })
	var first, last *member
	for _, m := range all {
		switch f.seat(m) {
		case "group.seat.0":
			first = m
		case "group.seat.3":
			last = m
		}
	}
	first.crash()
	last.crash()
	start := f.now()
	f.await(groupClaim+3*groupEvery, "the others own all within C and some intervals", f.even)
	f.history.add("fleet", "after %v", f.now()-start)
	f.settles(soon)
}

// Newcomers get their share, one after the other, also when there are more members than
// partitions.
func newcomers(f *fleet) {
	for range 7 {
		f.join(nil)
		f.settles(2 * soon)
	}
}

// A member that leaves gets nothing more, and what it has goes to the others before it ends.
func leaver(f *fleet) {
	all := f.together(3)
	all[1].stop()
	f.await(soon, "it has left", func() bool { return all[1].gone.Load() })
	f.settles(groupEvery)
	before := f.counts["leases"]
	time.Sleep(3 * groupEvery)
	if f.counts["leases"] != before {
		f.broken("a leaver", "%d partitions moved after its own had", f.counts["leases"]-before)
	}
}

// The member to which partitions move dies before it takes them.
func nextOwnerDies(f *fleet) {
	f.together(2)
	c := f.join(nil)
	before := f.load("group.plan").Version
	f.await(soon, "a plan with it", func() bool { return f.load("group.plan").Version != before })
	c.crash()
	f.settles(groupClaim + 2*soon)
}

// A process with the ID of one that has crashed is another member.
func sameID(f *fleet) {
	all := f.together(2)
	all[0].crash()
	f.join(func(_ *member, o *partition.Options) { o.Elector.ID = all[0].name })
	f.settles(groupClaim + 3*soon)
}

// Members that start together take each partition once.
func startTogether(f *fleet) {
	f.together(6)
	if f.counts["leases"] != 12 {
		f.broken("a start", "%d leases for 12 partitions", f.counts["leases"])
	}
}

// A deploy, in which each replacement comes within Settle, moves each partition once.
func rollingRestart(f *fleet) {
	f.options.Settle = 2 * groupEvery
	all := f.together(4)
	before := f.counts["leases"]
	for _, m := range all {
		m.stop()
		time.Sleep(groupEvery)
		f.join(nil)
		f.await(2*soon, "it has left", func() bool { return m.gone.Load() })
		f.settles(2 * soon)
	}
	if n := f.counts["leases"] - before; n != 12 {
		f.broken("a deploy", "%d moves for 12 partitions", n)
	}
}

// One slow worker does not hold up the others' moves.
func slowDrain(f *fleet) {
	f.options.Elector.ReleaseTimeout = 10 * groupTTL
	f.join(func(m *member, _ *partition.Options) { m.slow = 8 * groupTTL })
	f.settles(soon)
	b := f.join(nil)
	f.await(soon, "the others move", func() bool { return f.number(b) == 2 })
	f.await(soon, "the slow one does not", func() bool { return f.number(b) == 2 })
	f.await(10*groupTTL, "all move", func() bool { return f.number(b) == 3 })
	if last := f.options.Partitions - 1; f.owned[last] < f.returned[last] {
		f.broken("a drain is awaited", "the next lease began at %v, and the worker returned at %v", f.owned[last], f.returned[last])
	}
	f.settles(soon)
}

// A member whose Healthy returns an error leaves, and comes back when it is well.
func unhealthyMember(f *fleet) {
	all := f.together(1)
	b := f.join(func(m *member, o *partition.Options) {
		o.Elector.Healthy = func(context.Context) error {
			if m.sick.Load() {
				return errors.New("it is sick")
			}
			return nil
		}
	})
	f.settles(2 * soon)
	b.sick.Store(true)
	f.await(2*soon, "it owns nothing", func() bool { return f.number(b) == 0 && f.number(all[0]) == 6 })
	b.sick.Store(false)
	f.settles(groupClaim + 3*soon)
}

// A request to resign a seat makes its member hand over, and sit again later.
func askedToResign(f *fleet) {
	all := f.together(2)
	e, err := elector.New(f.store.Handle(), f.seat(all[0]), &elector.Options{TTL: groupTTL})
	if err != nil {
		f.Fatal(err)
	}
	if err := e.Operator().RequestResign(context.Background(), operate.ResignRequest{}); err != nil {
		f.Fatal(err)
	}
	e.Close()
	f.await(2*soon, "it owns nothing", func() bool { return f.number(all[0]) == 0 && f.number(all[1]) == 6 })
	f.settles(groupClaim + 3*soon)
}

// A lease whose record cannot be read for Hold(A) ends, although the seat is renewed.
func auditEnds(f *fleet) {
	a := f.together(1)[0]
	a.wire.deaf("group.p.")
	f.await(auditBound(), "its leases end", func() bool { return f.number(a) == 0 })
	if f.now() < rule.Hold(rule.Audit(groupTTL), 0.1)/2 {
		f.broken("audit", "the leases ended after %v", f.now())
	}
	a.wire.deaf("")
	f.settles(groupClaim + 3*soon)
}

// With StallTimeout a worker that does not call Check loses its partition, and a member that
// owns nothing keeps it.
func stalledMember(f *fleet) {
	f.options.Elector.StallTimeout = 2 * groupTTL
	stalls := func(m *member, _ *partition.Options) { m.stalls = true }
	a := f.join(stalls)
	f.await(soon, "it owns all", func() bool { return f.number(a) == 4 })
	f.await(4*groupTTL, "it loses them", func() bool { return f.number(a) == 0 })
	a.stop()
	for range 5 {
		f.join(nil)
	}
	a.gone.Store(true)
	f.settles(2*groupClaim + 2*soon)
}
