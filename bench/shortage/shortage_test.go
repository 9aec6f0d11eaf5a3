package shortage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/stores"
)

// A gauge keeps the least, of what a child saw and of what it counted, and measures the time until all stay led.
func TestGauge(t *testing.T) {
	begun := time.Now()
	g := newGauge(Row{Elections: 10}, 2, 15*time.Second, begun)
	done := false
	for _, s := range []struct{ second, phase, led int }{
		{0, 1, 3}, // of another phase
		{1, 2, 10}, {2, 2, 7}, {6, 2, 10}, {11, 2, 9},
		{20, 2, 10}, {21, 2, 8}, {22, 2, 10}, {36, 2, 10}, {37, 2, 10},
	} {
		if s.second == 20 {
			g.lifted = begun.Add(19 * time.Second)
		}
		if done {
			t.Errorf("it is complete before second %d", s.second)
		}
		done = g.take(sight{Phase: s.phase, Led: s.led, Least: 8}, begun.Add(time.Duration(s.second)*time.Second))
	}
	g.take(sight{Phase: 2, Led: 10, Least: 6}, begun.Add(37*time.Second))
	r := g.row
	if !done || r.Least != 6 || r.Kept != 10 || r.After != 3*time.Second || r.Silent != 14*time.Second || !slices.Equal(r.Led, []int{10, 10, 9, -1, 10, -1, -1, 10}) {
		t.Errorf("complete: %v, %+v", done, r)
	}
}

// Each bound finds a row that is beyond it.
func TestWrong(t *testing.T) {
	good := Row{Kind: stores.Etcd, Part: Scarce, Elections: 10_000, Least: 9_900, After: 10 * time.Second,
		Ended: 100, Requests: Requests{Most: 8, Swaps: 9, Loads: 90, Records: 10_000}}
	if wrong := good.Wrong(); len(wrong) > 0 {
		t.Error(wrong)
	}
	for want, change := range map[string]func(*Row){
		"9899 are led":           func(r *Row) { r.Least-- },
		"4999 are led":           func(r *Row) { r.Part, r.Least = Starved, 4999 },
		"within 10s":             func(r *Row) { r.After++ },
		"led within 10s":         func(r *Row) { r.After = -1 },
		"within 5s":              func(r *Row) { r.Kind, r.Part, r.After = stores.Postgres, Stopped, 5*time.Second+1 },
		"within 15s":             func(r *Row) { r.Part, r.After, r.Ended = Begun, 15*time.Second+1, 0 },
		"1 leases end":           func(r *Row) { r.Part, r.After, r.Ended = Stopped, 0, 1 },
		"2 leases end":           func(r *Row) { r.Part, r.Ended = Begun, 2 },
		"9 requests at a time":   func(r *Row) { r.Requests.Most++ },
		"100 of 10000 records":   func(r *Row) { r.Requests.Loads++ },
		"1 lines of the log rep": func(r *Row) { r.Logged.Repeated = 1 },
	} {
		r := good
		change(&r)
		if wrong := r.Wrong(); len(wrong) != 1 || !strings.Contains(wrong[0], want) {
			t.Errorf("%q; want only %q", wrong, want)
		}
	}
}
