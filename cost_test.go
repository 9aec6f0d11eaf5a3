package elector_test

import (
	"flag"
	"slices"
	"testing"
	"time"
)

var judge = flag.Bool("cost", false, "judge how long Check takes")

// What Check and Token cost is counted in allocations, which is exact, and as
// a ratio to time.Now, taken in turn. Only make bench judges the ratio: other
// tests run beside this one otherwise.
func TestCheckCost(t *testing.T) {
	e, l := candidate(t)
	nanoseconds := func(f func()) float64 {
		const calls = 20_000
		start := time.Now()
		for range calls {
			f()
		}
		return float64(time.Since(start)) / calls
	}
	for _, c := range []struct {
		name string
		call func()
	}{
		{"Check", func() { l.Check() }},
		{"Token", func() { e.Token() }},
	} {
		var ratios, took []float64
		for range 51 {
			now := nanoseconds(func() { sink = time.Now() })
			call := nanoseconds(c.call)
			ratios, took = append(ratios, call/now), append(took, call)
		}
		slices.Sort(ratios)
		slices.Sort(took)
		allocations := testing.AllocsPerRun(1000, c.call)
		t.Logf("%s: %.0f ns, %.2f times time.Now (median of %d pairs; least %.2f), %v allocations",
			c.name, took[len(took)/2], ratios[len(ratios)/2], len(ratios), ratios[0], allocations)
		if allocations != 0 {
			t.Errorf("%s allocates %v times", c.name, allocations)
		}
		if median := ratios[len(ratios)/2]; *judge && median > 1.5 {
			t.Errorf("%s takes %.2f times as long as time.Now, more than 1.5", c.name, median)
		}
	}
}
