package rule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/internal/fuzz/check" // for its init
)

// through returns the record of a partition that is held through an incarnation of seat 2
// with this nonce.
func through(nonce string, token uint64) backends.Record {
	return with(record("a", 1, token, 10), fmt.Sprintf(`{"c_seat":"2 %s"}`, nonce))
}

// created is through, written where there was no record.
func created(nonce string, token uint64) backends.Record {
	r := through(nonce, token)
	r.Extensions = Created(r.Extensions)
	return r
}

func TestHolder(t *testing.T) {
	for _, c := range []struct{ extensions, holder, reason string }{
		{`{"c_seat":"0 n"}`, "0 n", ""},
		{`{"c_seat":"12 n","k_a":"1","t_a":"1"}`, "12 n", ""},
		{``, "", "no extension c_seat"},
		{`{"k_seat":"0 n"}`, "", "no extension c_seat"},
		{`{"c_other":"1","c_seat":"0 n"}`, "", "the critical extension c_other"},
		{`{"c_seat":""}`, "", "not a seat and an incarnation"},
		{`{"c_seat":"0"}`, "", "not a seat and an incarnation"},
		{`{"c_seat":"0 "}`, "", "not a seat and an incarnation"},
		{`{"c_seat":"-1 n"}`, "", "not a seat and an incarnation"},
		{`{"c_seat":"+1 n"}`, "", "not a seat and an incarnation"},
		{`{"c_seat":"n 1"}`, "", "not a seat and an incarnation"},
	} {
		i, err := Holder(with(record("a", 1, 5, 10), c.extensions))
		switch {
		case c.reason == "" && (err != nil || i.String() != c.holder):
			t.Errorf("%s: it is %v, %v", c.extensions, i, err)
		case c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)):
			t.Errorf("%s: the error is %v, not %s", c.extensions, err, c.reason)
		}
	}
}

// FuzzHolder: the text of an incarnation is that of one or of none.
func FuzzHolder(f *testing.F) {
	for _, s := range []string{"", "0 n", "12 n m", "-1 n", "01 n", "99999999999999999999 n", "0  n", " 0 n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := backends.Extensions("").With(SeatName, s)
		if err != nil {
			return
		}
		i, err := Holder(backends.Record{Extensions: x})
		if err == nil && (i.String() != s || i.Seat < 0 || i.Nonce == "") || err != nil && len(err.Error()) > 1000 {
			t.Fatalf("%q is %+v, %v", s, i, err)
		}
	})
}

// An acquisition of a seat passes on what it replaces.
func TestReplaced(t *testing.T) {
	full := backends.Extensions(`{"k_a":"` + strings.Repeat("a", backends.MaxExtensions-len("k_a")) + `"}`)
	for _, c := range []struct {
		name string
		x    backends.Extensions
		prev backends.Record
		over string
	}{
		{"nothing", `{"k_a":"1"}`, backends.Record{}, ""},
		{"a holder", `{"k_a":"1"}`, record("n", 1, 5, 10), "n"},
		{"a vacancy that names others", "", with(vacant(record("n", 1, 5, 10)), `{"k_over":"k l m"}`), "k l m n"},
		{"one that names four", "", with(record("n", 1, 5, 10), `{"k_over":"j k l m"}`), "k l m n"},
		{"one that leaves no room", full, record("n", 1, 5, 10), ""},
	} {
		got := Replaced(c.x, c.prev)
		if over, _ := got.Get(OverName); over != c.over {
			t.Errorf("%s: these are over: %q, not %q", c.name, over, c.over)
		}
		if rest := got.Without(OverName); rest != c.x {
			t.Errorf("%s: the others are %.80s", c.name, rest)
		}
	}
}

// A sight is what a read of a seat has shown.
type sight struct {
	record    backends.Record
	sent, now time.Duration
}

// When an incarnation i with the TTL 10 is over: C is 11.
func TestOver(t *testing.T) {
	const end = 2 + 11 // of C after the first of these
	none, i, other := backends.Record{}, record("i", 1, 5, 10), record("j", 1, 6, 10)
	for _, c := range []struct {
		name   string
		sights []sight
		over   time.Duration
	}{
		{"never read", nil, Never},
		{"there", []sight{{i, 1, 2}}, Never},
		{"released", []sight{{vacant(i), 1, 2}}, 0},
		{"released, and put back", []sight{{vacant(i), 1, 2}, {i, 3, 4}}, 0},
		{"released, and replaced", []sight{{vacant(i), 1, 2}, {other, 3, 4}}, 0},
		{"replaced", []sight{{with(other, `{"k_over":"h i"}`), 1, 2}}, 0},
		{"replaced later", []sight{{i, 1, 2}, {with(vacant(other), `{"k_over":"i h"}`), 3, 4}}, 0},
		{"others are replaced", []sight{{with(other, `{"k_over":"h ii"}`), 1, 2}}, end},
		{"another one is vacant", []sight{{vacant(other), 1, 2}}, end},
		{"missing", []sight{{none, 1, 2}}, end},
		{"missing, and read again too early", []sight{{none, 1, 2}, {none, end - 1, end + 5}}, end + 6},
		{"missing, and read again after C", []sight{{none, 1, 2}, {none, end, end + 5}}, 0},
		{"another one, and missing after C", []sight{{other, 1, 2}, {none, end, end + 5}}, 0},
		{"seen meanwhile", []sight{{none, 1, 2}, {i, 5, 6}, {none, end, end + 5}}, end + 5 + 11},
		{"seen after C", []sight{{none, 1, 2}, {i, end, end + 5}}, Never},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSeats(0.1, 1000)
			var now time.Duration
			for _, x := range c.sights {
				s.See(Incarnation{3, "i"}, x.record, x.sent, x.now)
				now = x.now
			}
			if over := s.Over(Incarnation{3, "i"}, 10, now); over != c.over {
				t.Errorf("it is over at %d, not %d", over, c.over)
			}
			if over := s.Over(Incarnation{4, "i"}, 10, now); over != Never {
				t.Errorf("that of another seat is over at %d", over)
			}
			s.Forget(func(i Incarnation) bool { return i.Seat != 3 })
			if over := s.Over(Incarnation{3, "i"}, 10, now); over != Never {
				t.Errorf("it is over at %d although it was forgotten", over)
			}
		})
	}
}

// When a partition may be taken, after its record was seen in these states, at the times
// 100, 200 and so on. Challenge(A) is 1100.
func TestFree(t *testing.T) {
	none := backends.Record{}
	newer := with(record("a", 1, 5, 10), `{"c_newer":"1","c_seat":"2 over"}`)
	for _, c := range []struct {
		name     string
		states   []backends.Record
		founding bool
		free     time.Duration
		reason   string
	}{
		{"vacant", []backends.Record{vacant(through("living", 5))}, false, 0, ""},
		{"held through a living incarnation", []backends.Record{through("living", 5)}, true, Never, ""},
		{"held through one that is over", []backends.Record{through("over", 5)}, false, 0, ""},
		{"held through one that is absent", []backends.Record{through("absent", 5)}, false, 61, ""},
		{"held through this process's own", []backends.Record{through("own", 5)}, false, 0, ""},
		{"missing while founding", []backends.Record{none}, true, 0, ""},
		{"missing", []backends.Record{none}, false, 100 + 1100, ""},
		{"missing still", []backends.Record{none, none}, false, 100 + 1100, ""},
		{"vanished", []backends.Record{through("over", 5), none}, false, 200 + 1100, ""},
		{"vanished while founding", []backends.Record{through("over", 5), none}, true, 200 + 1100, ""},
		{"vanished, and made anew", []backends.Record{through("living", 5), none, through("over", 6)}, false, 0, ""},
		{"vanished twice", []backends.Record{none, through("over", 5), none}, false, 300 + 1100, ""},
		{"put back", []backends.Record{through("living", 5), through("over", 4)}, false, 200 + 1100, ""},
		{"put back as vacant", []backends.Record{through("living", 5), vacant(through("over", 4))}, true, 200 + 1100, ""},
		{"put back to a living incarnation", []backends.Record{through("over", 5), through("living", 4)}, false, Never, ""},
		{"vanished, and put back", []backends.Record{through("living", 5), none, vacant(through("over", 4))}, false, 200 + 1100, ""},
		{"unconfirmed", []backends.Record{created("over", 5)}, false, 100 + 1100, ""},
		{"unconfirmed, of a living incarnation", []backends.Record{created("living", 5)}, false, 100 + 1100, ""},
		{"unconfirmed, where it was missing", []backends.Record{none, created("living", 5)}, false, 200 + 1100, ""},
		{"unconfirmed, and missing again", []backends.Record{none, created("living", 5), none}, false, 300 + 1100, ""},
		{"unconfirmed still", []backends.Record{created("over", 5), created("over", 5)}, false, 100 + 1100, ""},
		{"unconfirmed, and confirmed", []backends.Record{created("over", 5), through("over", 5)}, false, 0, ""},
		{"unconfirmed while founding", []backends.Record{created("living", 5)}, true, 100 + 1100, ""},
		{"unconfirmed and over while founding", []backends.Record{created("over", 5)}, true, 0, ""},
		{"unconfirmed and own while founding", []backends.Record{created("own", 5)}, true, 0, ""},
		{"foreign", []backends.Record{record("a", 1, 5, 10)}, true, Never, "no group has written it"},
		{"foreign and vacant", []backends.Record{vacant(record("a", 1, 5, 10))}, true, Never, "no group has written it"},
		{"of a newer version", []backends.Record{newer}, false, Never, "c_newer"},
		{"of a newer version and vacant", []backends.Record{vacant(newer)}, false, Never, "c_newer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seats := NewSeats(0.1, 1000)
			seats.See(Incarnation{2, "over"}, vacant(record("over", 1, 5, 10)), 49, 50)
			seats.See(Incarnation{2, "absent"}, none, 49, 50)
			var trail Trail
			var last backends.Record
			for i, r := range c.states {
				trail.See(r, time.Duration(i+1)*100, 1000)
				last = r
			}
			free, err := trail.Free(last, seats, Incarnation{2, "own"}, c.founding, 1000, 0)
			if free != c.free || (err != nil) != (c.reason != "") || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("it is free at %d, not %d; the reason is %v", free, c.free, err)
			}
		})
	}
}

// A partition's token is greater than all that were seen, even if the record is gone.
func TestTrailToken(t *testing.T) {
	var trail Trail
	for i, c := range []struct {
		seen  backends.Record
		token uint64
	}{
		{backends.Record{}, 1},
		{through("n", 9), 10},
		{backends.Record{}, 10},
		{through("n", 4), 10},
		{through("n", 12), 13},
	} {
		trail.See(c.seen, time.Duration(i+1), 1000)
		if token := trail.Token(c.seen, 0, 0); token != c.token {
			t.Errorf("after state %d it is %d, not %d", i, token, c.token)
		}
	}
	if token := trail.Token(through("n", 12), 20, 0); token != 20 {
		t.Errorf("it is %d, not the least that is wanted, 20", token)
	}
}

// Views with a long gap between them do not show what was in it.
func TestGaps(t *testing.T) {
	var trail Trail
	seats := NewSeats(0.1, 100)
	i := Incarnation{1, "i"}
	for _, now := range []time.Duration{1000, 5000} {
		trail.See(backends.Record{}, now, 100)
		seats.See(i, backends.Record{}, now, now)
	}
	if at, _ := trail.Free(backends.Record{}, seats, Incarnation{}, false, 1000, 5000); at != 5000+1100 {
		t.Errorf("a record that is missing again is free at %d", at)
	}
	if at := seats.Over(i, 1000, 5000); at != 5000+1100 {
		t.Errorf("an incarnation that is absent again is over at %d", at)
	}
}

// A newer state that another read has shown since the record was read counts.
func TestGlimpseBetween(t *testing.T) {
	const audit = 15 * time.Minute
	seats := NewSeats(0.1, time.Minute)
	vacant, newer := through("other", 5), through("another", 10)
	vacant.Holder = ""
	own := Incarnation{1, "own"}
	var trail Trail
	trail.See(vacant, time.Hour, audit/4)
	if at, err := trail.Free(vacant, seats, own, false, audit, time.Hour); at != 0 || err != nil {
		t.Errorf("a vacant record is free at %v, %v", at, err)
	}
	trail.Glimpse(newer)
	if at, err := trail.Free(vacant, seats, own, false, audit, time.Hour); at <= time.Hour || err != nil {
		t.Errorf("after a newer state was seen, the older one is free at %v, %v", at, err)
	}
	trail.See(vacant, time.Hour+1, audit/4)
	if at, err := trail.Free(vacant, seats, own, false, audit, time.Hour); at < time.Hour+audit || err != nil {
		t.Errorf("when the older one is read again, it is free at %v, %v", at, err)
	}
}
