package groups

import (
	"strings"
	"testing"
	"time"
)

func TestBoard(t *testing.T) {
	var now time.Duration
	b := newBoard(2, func() time.Duration { return now })
	views := []view{units, holds}
	say := func(member, kind string, v view, partition int) {
		now++
		b.take(member, message{Kind: kind, View: v, Partition: partition, At: now})
	}
	check := func(members []string, want string) {
		t.Helper()
		err := b.settled(views, members, 5)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("at %d: error %v; want %q", now, err, want)
		}
	}
	ab := []string{"a", "b"}
	check(ab, "units: partition 0 has 0 members")
	say("a", began, units, 0)
	say("a", began, units, 1)
	check(ab, "units: member b has no partition")
	say("a", ended, units, 1)
	say("b", began, units, 1)
	check(ab, "holds: partition 0 has 0 members")
	say("a", began, holds, 0)
	say("b", began, holds, 1)
	check(ab, "a partition changed 0s ago")
	now += 5
	check(ab, "")
	check([]string{"a"}, "units: members work that should not: [b]")
	say("a", ended, units, 0)
	check(ab, "units: partition 0 has 0 members")
	say("a", began, units, 0)
	check(ab, "") // the last view has not changed
	say("b", began, units, 0)
	check(ab, "units: partition 0 has 2 members: [a b]")

	// A member that was killed works until then. A message for a partition of another
	// member ends nothing.
	say("b", ended, units, 0)
	b.killed("a", now)
	for _, v := range views {
		for _, s := range b.all[v] {
			if s.member == "a" && s.to == forever {
				t.Errorf("%s: %+v has not ended", v, s)
			}
		}
	}
	if o := b.judge(units, span{now, now + 10}); o.moves != 0 || !o.open || len(o.still) != 1 || o.still[0] != 10 {
		t.Errorf("%+v", o)
	}
	b.froze("b", span{now, now + 4})
	if o := b.judge(units, span{now, now + 10}); len(o.still) != 2 || o.still[1] != 4 {
		t.Errorf("%+v", o)
	}
	b.take("b", message{Kind: failed, Error: "out of reach"})
	check(ab, "member b: out of reach")
}
