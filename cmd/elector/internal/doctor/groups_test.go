package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

// What two looks at a group mean.
func TestConclude(t *testing.T) {
	ttl := 10 * time.Second
	member := func(id string, seat int, sequence uint64) partition.Member {
		return partition.Member{ID: id, Seat: seat, TTL: ttl, Attempt: backends.Attempt{Nonce: id, Sequence: sequence}}
	}
	owner := func(n int, id, planned string, token uint64) partition.Owner {
		o := partition.Owner{Partition: n, ID: id, Planned: planned, Token: elector.Token(token)}
		if id == "" {
			o.Waiting = "its last owner has given it up"
		}
		return o
	}
	drained := member("b", 1, 2)
	drained.Drained = true
	a1, a2, b1, b2 := member("a", 0, 1), member("a", 0, 2), member("b", 1, 1), member("b", 1, 2)
	type members = []partition.Member
	type owners = []partition.Owner
	for name, c := range map[string]struct {
		before, now look
		level, seen string
		settled     bool
	}{
		"all well": {look{members: members{a1, b1}}, look{members: members{a2, b2}, owners: owners{owner(0, "a", "a", 0), owner(1, "b", "b", 0)}},
			OK, "2 members share 2 partitions", true},
		"a drained member owns nothing": {look{members: members{a1, b1}}, look{members: members{a2, drained}, owners: owners{owner(0, "a", "a", 0)}},
			OK, "b is drained", true},
		"a member that came meanwhile": {look{members: members{a1}}, look{members: members{a2, b1}, owners: owners{owner(0, "a", "a", 0)}},
			OK, "2 members", true},
		"no member": {look{}, look{owners: owners{owner(0, "", "", 0)}},
			Warn, "no member runs; 1 partition has no owner", true},
		"no plan": {look{members: members{a1}}, look{members: members{a2}},
			Fail, "no plan", false},
		"a seat of one that is gone": {look{members: members{a1, b1}, owners: owners{owner(0, "a", "a", 0)}}, look{members: members{a2, b1}, owners: owners{owner(0, "a", "a", 0)}},
			OK, "b has not renewed seat 1 for 12s, so it is gone", false},
		"what one owns that is gone": {look{members: members{a1, b1}, owners: owners{owner(0, "b", "b", 0)}}, look{members: members{a2, b1}, owners: owners{owner(0, "b", "b", 0)}},
			Fail, "1 partition has no owner for 12s: 0", false},
		"all are gone": {look{members: members{a1}, owners: owners{owner(0, "a", "a", 0)}}, look{members: members{a1}, owners: owners{owner(0, "a", "a", 0)}},
			Fail, "1 partition has no owner", false},
		"no owner all the time": {look{members: members{a1}, owners: owners{owner(0, "", "a", 0)}}, look{members: members{a2}, owners: owners{owner(0, "", "a", 0)}},
			Fail, "0: its last owner has given it up", false},
		"no owner, and another one between": {look{members: members{a1}, owners: owners{owner(0, "", "a", 0)}}, look{members: members{a2}, owners: owners{owner(0, "", "a", 1)}},
			OK, "1 member shares 1 partition", true},
		"a move that does not end": {look{members: members{a1, b1}, owners: owners{owner(0, "a", "b", 0)}}, look{members: members{a2, b2}, owners: owners{owner(0, "a", "b", 0)}},
			Warn, "1 partition has not moved for 12s: 0; 0 should go from a to b", false},
		"a move that has begun": {look{members: members{a1, b1}, owners: owners{owner(0, "a", "a", 0)}}, look{members: members{a2, b2}, owners: owners{owner(0, "a", "b", 0)}},
			OK, "2 members share", true},
	} {
		t.Run(name, func(t *testing.T) {
			var line Line
			d := &doctor{report: func(l Line) { line = l }}
			found := &groupCase{}
			found.conclude(c.before, c.now, 12*time.Second)
			found.report(d, "group orders")
			if line.Level != c.level || !strings.Contains(line.Seen, c.seen) || (line.Level == OK) != (line.Fix == "") || line.Check != "group orders" {
				t.Errorf("%+v, want %s with %q", line, c.level, c.seen)
			}
			if (line.Level == Fail) != errors.Is(d.failed, ErrNoOwner) {
				t.Errorf("it fails with %v", d.failed)
			}
			if got := settled(c.before, c.now); got != c.settled {
				t.Errorf("settled: %v", got)
			}
		})
	}
}
