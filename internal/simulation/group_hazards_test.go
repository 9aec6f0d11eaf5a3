package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/partition"
)

// groupEvery and groupClaim are the renewal interval and C of the members here.
const (
	groupEvery = groupTTL * 3 / 10
	groupClaim = groupTTL * 11 / 10
	soon       = 8 * groupEvery // after which all is even again, if no member has crashed
)

// hazards are the hazards of partitions. In all of them the fleet checks that each partition
// has one owner, and that tokens grow.
var hazards = []struct {
	name       string
	partitions int
	run        func(f *fleet)
}{
	{"late-take", 2, lateTake},
	{"late-plan", 4, latePlan},
	{"seat-deleted", 4, seatDeleted},
	{"seat-used-again", 4, seatUsedAgain},
	{"deposed-asleep", 4, deposedAsleep},
	{"record-deleted", 4, recordDeleted},
	{"deleted-and-moved", 4, deletedAndMoved},
	{"plan-deleted", 4, planDeleted},
	{"take-lost", 4, takeLost},
	{"release-lost", 4, releaseLost},
	{"late-creation", 1, lateCreation},
	{"all-lapse", 6, allLapse},
	{"alone-after-outage", 6, aloneAfterOutage},
	{"worker-stays", 4, workerStays},
	{"worker-fails", 4, workerFails},
	{"many-incarnations", 2, manyIncarnations},
	{"ordinary-election", 2, ordinaryElection},
	{"foreign-partition", 4, foreignPartition},
	{"foreign-plan", 4, foreignPlan},
	{"foreign-seat", 4, foreignSeat},
	{"newer-partition", 4, newerPartition},
	{"planner-crashes", 9, plannerCrashes},
	{"newcomers", 5, newcomers},
	{"leaver", 6, leaver},
	{"next-owner-dies", 6, nextOwnerDies},
	{"same-id", 6, sameID},
	{"start-together", 12, startTogether},
	{"rolling-restart", 12, rollingRestart},
	{"slow-drain", 6, slowDrain},
	{"unhealthy", 6, unhealthyMember},
	{"asked-to-resign", 6, askedToResign},
	{"audit-ends", 2, auditEnds},
	{"stalled", 4, stalledMember},
}

func TestHazards(t *testing.T) {
	for _, h := range hazards {
		t.Run(h.name, func(t *testing.T) { withFleet(t, *seedFlag, h.partitions, h.run) })
	}
}

// together adds members and waits until they share the partitions.
func (f *fleet) together(n int) (all []*member) {
	f.Helper()
	for range n {
		all = append(all, f.join(nil))
	}
	f.settles(3 * soon)
	return all
}

// number returns how many partitions a member owns.
func (f *fleet) number(m *member) int { return f.shares()[m] }

// await waits for a condition.
func (f *fleet) await(within time.Duration, what string, ok func() bool) {
	f.Helper()
	for end := f.now() + within; !ok(); time.Sleep(groupEvery / 20) {
		if f.now() > end {
			f.broken(what, "not within %v; %s", within, f.describe())
			f.FailNow()
		}
	}
}

// seat returns the seat that a member holds.
func (f *fleet) seat(m *member) string {
	for i := range 20 {
		if r := f.load(fmt.Sprintf("group.seat.%d", i)); r.Holder == m.name {
			return fmt.Sprintf("group.seat.%d", i)
		}
	}
	f.Fatalf("%s has no seat", m.name)
	return ""
}

func (f *fleet) load(name string) backends.Record {
	r, _ := f.store.Handle().Load(context.Background(), name)
	return r
}

// warned reports whether the history has a line with all these texts.
func (f *fleet) warned(texts ...string) bool {
	for _, line := range strings.Split(f.history.tail(1e9), "\n") {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return true
		}
	}
	return false
}

// An acquisition has no answer, the plan moves on, and it is applied late: the process
// that has sent it knows, and gives the partition up.
func lateTake(f *fleet) {
	a := f.join(func(m *member, _ *partition.Options) {
		m.wire.batches = 1
		m.wire.next(true, "group.p.1", trip{out: 3 * soon, breaks: time.Millisecond})
	})
	f.await(3*soon, "a write without an answer", func() bool { return len(a.wire.left()) == 0 })
	a.wire.deaf("group.p.1")
	b := f.join(func(m *member, _ *partition.Options) { m.wire.deaf("group.p.1") })
	f.await(4*soon, "the write is applied", func() bool { return f.load(record(1)).Holder == a.name })
	a.wire.deaf("")
	b.wire.deaf("")
	f.settles(3 * soon)
}

// A plan is written late, after others.
func latePlan(f *fleet) {
	all := f.together(2)
	all[0].wire.next(true, "group.plan", trip{out: 2 * soon, breaks: time.Millisecond})
	f.together(1)
	time.Sleep(3 * soon)
	f.settles(soon)
}

// A seat's record is deleted under its holder, and another process creates it.
func seatDeleted(f *fleet) {
	all := f.together(2)
	name := f.seat(all[0])
	all[0].wire.cut(true) // it does not know
	f.store.Delete(name)
	c := f.join(nil)
	f.await(groupEvery, "the seat is taken again", func() bool { return f.load(name).Holder == c.name })
	f.await(groupClaim+soon, "its partitions have owners", func() bool { return f.number(all[1])+f.number(c) == 4 })
	all[0].wire.cut(false)
	f.settles(3 * soon)
}

// Partitions of a member that is gone are taken through the certificate in its seat, which
// a newcomer has taken again.
func seatUsedAgain(f *fleet) {
	all := f.together(2)
	name := f.seat(all[0])
	all[0].crash()
	f.await(groupClaim+soon, "the seat is vacant", func() bool { return f.load(name).Vacant() })
	c := f.join(nil)
	f.settles(soon)
	if f.seat(c) != name {
		f.broken("seats are used again", "%s has %s", c.name, f.seat(c))
	}
}

// The record of a partition that is owned is deleted: its owner writes it again, and no
// other process takes it.
func recordDeleted(f *fleet) {
	f.together(2)
	before := f.owners()
	f.store.Delete(record(2))
	f.await(rule.Audit(groupTTL)/2, "the owner writes it again", func() bool { return f.load(record(2)).Exists() })
	f.settles(soon)
	if after := f.owners(); after[2] != before[2] {
		f.broken("a deleted record", "it moved from %s to %s", before[2].name, after[2].name)
	}
}

// A record is deleted while its owner gives the partition up: the next one waits for A, so
// does not take it before the worker has returned.
func deletedAndMoved(f *fleet) {
	f.join(func(m *member, _ *partition.Options) { m.slow = groupTTL })
	f.settles(soon)
	time.Sleep(soon)
	f.store.Delete(record(3))
	b := f.join(nil)
	f.await(auditBound()+soon, "it moves", func() bool { return f.owners()[3] == b })
	f.settles(soon)
}

// The plan is deleted: the members know it, nothing moves, and it is not founding.
func planDeleted(f *fleet) {
	f.together(3)
	before := f.counts["leases"]
	if plan := f.load("group.plan").Value; !strings.Contains(plan, "settled") {
		f.broken("founding ends", "the plan is %q", plan)
	}
	f.store.Delete("group.plan")
	f.await(soon, "the plan is written again", func() bool { return f.load("group.plan").Exists() })
	r := f.load("group.plan")
	f.settles(soon)
	if f.counts["leases"] != before || strings.Contains(r.Value, "founding") {
		f.broken("a deleted plan", "%d leases began, the plan is %q", f.counts["leases"]-before, r.Value)
	}
}

// The store loses an acknowledged acquisition: the owner finds that at its audit.
func takeLost(f *fleet) {
	f.together(2)
	before := f.load(record(1))
	old := f.store.Get(record(1))
	was := f.owners()[1]
	was.stop()
	was.gone.Store(true)
	f.await(soon, "the other owns it", func() bool { return f.owners()[1] != nil && f.owners()[1] != was })
	f.spoil(record(1), old)
	f.await(2*auditBound(), "the other's lease ends", func() bool { return f.load(record(1)).Attempt != before.Attempt })
	f.settles(2*auditBound() + soon)
}

// The store loses an acknowledged release: the process that has given it up finds that.
func releaseLost(f *fleet) {
	all := f.together(1)
	olds := map[int][]byte{}
	for n := range 4 {
		olds[n] = f.store.Get(record(n))
	}
	f.join(nil)
	lost := -1
	f.await(soon, "a release", func() bool {
		for n := range 4 {
			if r := f.load(record(n)); r.Vacant() && r.Exists() {
				f.spoil(record(n), olds[n])
				lost = n
			}
		}
		return lost >= 0
	})
	f.settles(2*auditBound() + soon)
	if f.number(all[0]) != 2 {
		f.broken("a lost release", "%s", f.describe())
	}
}

// A creation is applied late, after the record was deleted.
func lateCreation(f *fleet) {
	a := f.join(func(m *member, _ *partition.Options) {
		m.wire.next(true, "group.p.0", trip{out: time.Millisecond, back: time.Millisecond, again: 4 * soon})
	})
	f.settles(soon)
	b := f.join(nil)
	f.settles(2 * soon)
	a.stop()
	a.gone.Store(true)
	f.await(soon, "the other owns it", func() bool { return f.number(b) == 1 })
	f.store.Delete(record(0))
	time.Sleep(5 * soon)
	f.settles(2*auditBound() + soon)
}

// An ordinary election, and so an older version of this library, leaves the records of a
// group alone, also when all members are gone.
func ordinaryElection(f *fleet) {
	all := f.together(1)
	all[0].crash()
	for _, name := range []string{record(0), "group.plan"} {
		e, err := elector.New(f.store.Handle(), name, &elector.Options{TTL: groupTTL})
		if err != nil {
			f.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*groupClaim)
		if _, err := e.Campaign(ctx); err == nil || !strings.Contains(err.Error(), "extension c_") {
			f.broken("an ordinary election", "of %s: %v", name, err)
		}
		cancel()
		e.Close()
	}
}

// overwritten checks what members do about a record that was overwritten: nothing moves to
// it, the log names it, and all goes on once it is gone.
func (f *fleet) overwritten(name, content string) {
	f.store.Put(name, []byte(content))
	f.join(func(m *member, _ *partition.Options) { m.refused = name })
	f.await(auditBound(), "the log names "+name, func() bool { return f.warned("log", name) })
	time.Sleep(auditBound())
	if got := string(f.store.Get(name)); got != content {
		f.broken("an overwritten record", "%s is now %s", name, got)
	}
	f.spoil(name, nil)
	f.settles(2 * auditBound())
}

func foreignPartition(f *fleet) {
	f.together(2)
	f.overwritten(record(2), `{"somebody":"else's"}`)
}

func newerPartition(f *fleet) {
	f.together(2)
	content := strings.Replace(string(f.store.Get(record(2))), `"c_seat"`, `"c_new":"7","c_seat"`, 1)
	f.overwritten(record(2), content)
}

func foreignPlan(f *fleet) {
	f.together(2)
	f.overwritten("group.plan", strings.Replace(string(f.store.Get("group.plan")), `"c_plan":"1"`, `"c_plan":"2"`, 1))
}

// A seat that was overwritten is left alone, and stops no plan. It may be a newer version's,
// so what was held through it waits, and the log names it.
func foreignSeat(f *fleet) {
	all := f.together(2)
	name, content := f.seat(all[0]), `{"somebody":"else's"}`
	f.store.Put(name, []byte(content))
	f.join(nil)
	f.await(2*groupClaim+2*soon, "a plan with all three", func() bool {
		planned := 0
		members, _ := all[1].group.Members(context.Background())
		for _, m := range members {
			planned += min(1, m.Planned)
		}
		return planned == 3
	})
	f.await(2*groupClaim, "the log names it", func() bool { return f.warned("cannot be taken", name) })
	time.Sleep(4 * groupClaim)
	if got := string(f.store.Get(name)); got != content || f.number(all[1]) > 2 {
		f.broken("an overwritten seat", "%s is now %s; %s", name, got, f.describe())
	}
	f.store.Delete(name)
	f.settles(2*groupClaim + 2*soon)
}
