package partition

import (
	"reflect"
	"testing"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/internal/fuzz/check" // for its init
)

// FuzzParsePlan: a text is that of one plan or of none; a plan has a table, in which every
// partition is a planned seat's.
func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{"", "1", "2 1 1s settled 0", "1 7 10m0s founding 0-3*2,.,9,-4", "1 1 1ns settled .,.*3,-1,-0,5", "1 9 1s settled 0-99999999999,-1", "1 1 1s settled 0-9999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePlan(s)
		if err != nil {
			if p != nil || len(err.Error()) > 1000 {
				t.Fatalf("the plan is %v, and the error %v", p, err)
			}
			return
		}
		if p.String() != s {
			t.Fatalf("%q comes back as %q", s, p)
		}
		if len(p.positions) > 100 || p.partitions > 1000 {
			return // slow
		}
		m := p.weights()
		for n, seat := range p.table() {
			if m[seat] == 0 {
				t.Fatalf("partition %d has the seat %d of %q", n, seat, s)
			}
		}
		m[maxSeats-1] = 3
		q := p.next(m)
		if again, err := parsePlan(q.String()); err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("the plan after %q is %q, and comes back as %v, %v", s, q, again, err)
		}
	})
}

// FuzzParseNote: the value of a seat is one note or none.
func FuzzParseNote(f *testing.F) {
	for _, s := range []string{"", "1 ready new 100 1 - ", "1 leaving planned 100 7 0a1b my value", "1 ready new 0 1 - ", "1 ready new -1 1 - ", "1 ready new 1 1001 - ", "2 ready new 1 1 - "} {
		f.Add("a", s)
	}
	f.Fuzz(func(t *testing.T, holder, s string) {
		m, ok := parseNote(backends.Record{Holder: holder, Value: s})
		if ok && (holder == "" || m.String() != s || m.partitions < 1 || m.weight < 1 || m.weight > maxWeight) {
			t.Fatalf("%q of %q is %+v", s, holder, m)
		}
	})
}
