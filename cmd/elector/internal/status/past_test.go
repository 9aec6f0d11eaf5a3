package status

import (
	"fmt"
	"testing"
	"time"
)

// A past keeps the last ten minutes, in steps, and shows a gap as one.
func TestPast(t *testing.T) {
	at := func(steps float64) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(steps * float64(step)))
	}
	var p past
	a := func(m moment) int { return m.owned["a"] }
	without := func(m moment) int { return m.without }
	shows := func(now time.Time, value func(moment) int, want string) {
		t.Helper()
		if got := fmt.Sprint(p.runs(now, 1, value)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	shows(at(0), a, "[[-1 120]]")
	p.add(at(0), map[string]int{"a": 4}, 0)
	p.add(at(1.1), map[string]int{"a": 4}, 3)
	p.add(at(1.5), map[string]int{"a": 3, "b": 1}, 0) // in the same step
	shows(at(1.9), a, "[[-1 118] [4 1] [3 1]]")
	shows(at(1.9), without, "[[-1 118] [0 1] [3 1]]")
	shows(at(4), a, "[[-1 115] [4 1] [3 2] [-1 2]]") // nothing was read for three steps
	p.add(at(1), map[string]int{"a": 2}, 1)          // the clock went back
	p.add(at(5), map[string]int{"b": 4}, 0)
	shows(at(5), a, "[[-1 114] [4 1] [2 2] [-1 2] [0 1]]")
	if ids := fmt.Sprint(p.owners()); ids != "[a b]" {
		t.Errorf("owners: %s", ids)
	}
	for n := range 300 {
		p.add(at(float64(10+n)), map[string]int{"b": 4}, 0)
	}
	shows(at(309), func(m moment) int { return m.owned["b"] }, "[[4 120]]")
	if ids := fmt.Sprint(p.owners()); ids != "[b]" || len(p.moments) != steps {
		t.Errorf("later: %s, %d moments", ids, len(p.moments))
	}
}
