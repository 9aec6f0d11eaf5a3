package rule

import (
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// record returns a state of the record. Its version is the name of its attempt and its
// number.
func record(by string, number, token uint64, ttl time.Duration) backends.Record {
	return backends.Record{Holder: by, Token: token, TTL: ttl, RenewEvery: ttl / 3,
		Attempt: backends.Attempt{Nonce: by, Sequence: number}, Version: backends.Version(by + string('0'+rune(number)))}
}

// vacant returns the state that a release makes of r.
func vacant(r backends.Record) backends.Record {
	r.Holder, r.Attempt.Sequence, r.Version = "", r.Attempt.Sequence+1, r.Version+"vacant"
	return r
}

// with returns r with extensions, as another process adds them.
func with(r backends.Record, extensions string) backends.Record {
	r.Extensions, r.Version = backends.Extensions(extensions), r.Version+"with"
	return r
}

// A state is one that a View is shown, by a read or a push.
type state struct {
	pushed bool
	record backends.Record
}

// enter shows v the state, and returns whether it was believed.
func (s state) enter(v *View, now time.Duration) bool {
	if s.pushed {
		return v.Pushed(s.record, now)
	}
	return v.Read(s.record, v.Mark(), now)
}

func read(r backends.Record) state   { return state{false, r} }
func pushed(r backends.Record) state { return state{true, r} }

// When a record may be taken over, after what was seen of it.
func TestPushed(t *testing.T) {
	const now = time.Hour // of each state
	none := backends.Record{}
	second, critical := record("b", 1, 5, time.Hour), with(record("a", 1, 5, time.Second), `{"c_stop":"1"}`)
	for _, c := range []struct {
		name   string
		states []state
		free   time.Duration
		older  bool // the last state was not believed
	}{
		{"a vacancy", []state{pushed(vacant(second))}, 0, false},
		// The leader whose record vanished may know nothing of it yet, so the vacancy that is
		// left is not free at once.
		{"mx/vanished", []state{pushed(vacant(second)), pushed(record("a", 1, 7, time.Hour)), pushed(none), pushed(vacant(record("b", 3, 8, time.Second)))},
			now + time.Hour, false},
		// The second leader has never seen the first one's record, which vanished, and so has
		// a lower token. The first one's is shown late, and then the second one's vanishes.
		{"mx/vanished-late", []state{read(second), pushed(record("a", 1, 9, time.Second)), pushed(none), read(none)},
			now + time.Hour, false},
		{"the leader before has resigned", []state{read(second), read(vacant(second)), read(record("c", 1, 7, time.Second)), read(none)},
			now + time.Second, false},
		// A leader with a lower token is pushed where there was no record, and is gone when
		// the record is read.
		{"pushed and gone", []state{pushed(record("a", 1, 9, 2)), read(none), pushed(second), read(none)}, now + time.Hour, false},
		// Of two states with one attempt it is not known which is newer.
		{"pushed late", []state{pushed(record("a", 1, 5, time.Second)), read(critical), pushed(record("a", 1, 5, time.Second))}, Never, true},
		{"an older renewal", []state{read(record("a", 2, 5, time.Second)), pushed(record("a", 1, 5, time.Hour))}, now + time.Second, true},
		{"a lower token", []state{read(record("a", 1, 9, time.Hour)), read(record("b", 1, 5, time.Second))}, now + time.Hour, false},
		{"a leader", []state{read(second)}, now + time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v View
			believed := true
			for _, s := range c.states {
				believed = s.enter(&v, now)
			}
			if free := v.Snapshot().Free; free != c.free || believed == c.older {
				t.Errorf("free from %v, not %v; the last state was believed: %v", free, c.free, believed)
			}
		})
	}
}

// What does not change the leader's write does not prolong its lease, and what may be an
// older state does.
func TestSince(t *testing.T) {
	leads := record("a", 1, 5, time.Hour)
	again := leads
	again.Version = "again"
	for _, c := range []struct {
		name  string
		next  backends.Record
		same  bool // the store certainly shows the same write
		since time.Duration
	}{
		{"shown again", leads, false, 1},
		{"renewed", record("a", 2, 5, time.Hour), false, 2},
		{"an extension added", with(leads, `{"t_request":"1"}`), false, 1},
		{"touched", again, true, 1},
		{"restored", again, false, 2},
		{"the value edited, by the same write", backends.Record{Holder: "a", Token: 5, TTL: time.Hour, RenewEvery: time.Minute, Attempt: leads.Attempt, Version: "x"}, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := View{SameWrite: func(_, _ backends.Version) bool { return c.same }}
			v.Read(leads, v.Mark(), 1)
			v.Read(c.next, v.Mark(), 2)
			if s := v.Snapshot(); s.Since != c.since || s.Free != c.since+time.Hour {
				t.Errorf("it has stood since %v, and is free from %v", s.Since, s.Free)
			}
		})
	}
}

// An acquisition is believed, retried and given up by what was seen since it began.
func TestClaim(t *testing.T) {
	none := backends.Record{}
	for _, c := range []struct {
		name           string
		prev           backends.Record // that the acquisition replaces
		doubt          bool
		states         []state // since it began
		believed, over bool
	}{
		{"nothing", vacant(record("b", 1, 5, 1)), false, nil, true, true},
		{"its own state", vacant(record("b", 1, 5, 1)), true, []state{pushed(record("mine", 1, 7, time.Hour))}, true, true},
		{"another acquisition", vacant(record("b", 1, 5, 1)), false, []state{pushed(record("c", 1, 6, 1))}, false, false},
		{"the record vanished", vacant(record("b", 1, 5, 1)), false, []state{read(none)}, false, false},
		{"a creation", none, false, nil, true, true},
		{"a creation in doubt", none, true, nil, true, false},
		{"a creation, and a winner that came and went", none, true, []state{read(record("c", 1, 6, 1)), read(none)}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v View
			v.Read(c.prev, v.Mark(), 0)
			token, free := v.Claim(c.prev, "mine", 7, 10, 0)
			if token != 7 || !free {
				t.Fatalf("the claim has token %d; free: %v", token, free)
			}
			if c.doubt {
				v.Doubt()
			}
			for _, s := range c.states {
				s.enter(&v, 11)
			}
			if got := v.Believes(record("mine", 1, 7, time.Hour), 11); got != c.believed {
				t.Errorf("believed: %v", got)
			}
			if got := v.MayRetry(c.prev, "mine", 7, 11); got != c.believed {
				t.Errorf("may be written again: %v", got)
			}
			if got := v.Over("mine"); got != c.over {
				t.Errorf("may be taken at once: %v", got)
			}
		})
	}
	t.Run("of a record that is not free", func(t *testing.T) {
		var v View
		r := record("b", 1, 5, time.Hour)
		v.Read(r, v.Mark(), 0)
		if _, free := v.Claim(r, "mine", 0, time.Hour-1, 0); free {
			t.Error("a claim on a record whose lease is not over")
		}
		if _, free := v.Claim(vacant(r), "mine", 0, 2*time.Hour, 0); free {
			t.Error("a claim on another state than the one last seen")
		}
		if _, free := v.Claim(r, "mine", 0, time.Hour, 0); !free {
			t.Error("no claim on a record whose lease is over")
		}
	})
}

// What is over stays so when the next acquisition begins, until another one is seen.
func TestOverNext(t *testing.T) {
	var v View
	first := vacant(record("b", 1, 5, 1))
	v.Read(first, v.Mark(), 0)
	prev := first
	for i := range 3 {
		nonce := string('x' + rune(i))
		if _, free := v.Claim(prev, nonce, 0, 10, 0); !free {
			t.Fatalf("acquisition %d may not replace what is over", i)
		}
		prev = record(nonce, 1, uint64(6+i), time.Hour)
		v.Wrote(v.Snapshot().Record, prev, 10)
		if !v.Over(nonce) {
			t.Fatalf("acquisition %d is not over", i)
		}
	}
	if _, free := v.Claim(prev, "last", 0, 10, 0); !free {
		t.Fatal("the last may not replace what is over")
	}
	late := record("x", 9, 9, time.Hour) // a write of the first acquisition, applied late
	v.Read(late, v.Mark(), 11)
	if free := v.Snapshot().Free; free > 11 {
		t.Errorf("what is over is free from %v", free)
	}
	v.Read(vacant(record("c", 1, 10, 1)), v.Mark(), 12)
	v.Read(record("x", 10, 11, time.Hour), v.Mark(), 13)
	if free := v.Snapshot().Free; free < time.Hour {
		t.Errorf("after another acquisition was seen it is free from %v", free)
	}
}

// A late read that shows that the record vanished counts only if the record was there when
// it was sent.
func TestVanished(t *testing.T) {
	const now = time.Hour
	first, next, none := record("a", 1, 5, time.Hour), vacant(record("b", 1, 8, time.Second)), backends.Record{}
	var v View
	before := v.Mark()
	v.Read(first, before, now)
	mark := v.Mark()
	v.Pushed(next, now)
	v.Read(none, before, now)
	if s := v.Snapshot(); s.Free != 0 {
		t.Errorf("after a read that was sent before the record was made, it is free from %v", s.Free)
	}
	v.Read(none, mark, now)
	if s := v.Snapshot(); s.Free != 2*now {
		t.Errorf("it is free from %v", s.Free)
	}
}

func TestToken(t *testing.T) {
	y2024 := time.Duration(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	micros := uint64(y2024 / time.Microsecond)
	for _, c := range []struct {
		highest, min uint64
		wall         time.Duration
		token        uint64
	}{
		{0, 0, 0, 1},
		{7, 0, 0, 8},
		{7, 20, 0, 20},
		{7, 20, y2024, micros},
		{micros + 5, 20, y2024, micros + 6},
		{7, 0, time.Hour, 8}, // 1970
		{backends.MaxToken, 0, 0, 0},
		{backends.MaxToken - 1, 0, 0, backends.MaxToken},
	} {
		if got := Token(c.highest, c.min, c.wall); got != c.token {
			t.Errorf("after %d, at least %d, at %v: %d, not %d", c.highest, c.min, c.wall, got, c.token)
		}
	}
}

// A candidate that waits takes a Snapshot at each look, also of a paused election.
func TestSnapshotAllocates(t *testing.T) {
	var v View
	v.Read(with(vacant(record("a", 1, 5, 10)), `{"c_pause":"0 operator why","k_history":"a","t_bid":"b"}`), 0, 1)
	if n := testing.AllocsPerRun(100, func() { v.Snapshot() }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
