//go:build !race

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The race detector lets goroutines run in an order of its own, so that what
// happens at one instant is done differently each time. A seed replays without
// it; make test runs this case so.
func init() { campaignCases = append(campaignCases, simCase{"sim/replay", replay}) }

// replay checks that a seed replays: the same history twice, but for the order
// of lines of one instant. All requests of a process share a room, so of two that come at one
// instant the scheduler decides which goes first: that happens in few seeds, and of ten one may
// differ.
func replay(t *testing.T) {
	var differ []string
	for seed := uint64(1); seed <= 10; seed++ {
		w, _ := randomRun(t, seed)
		first := w.history.sorted()
		w, _ = randomRun(t, seed)
		if second := w.history.sorted(); !slices.Equal(first, second) {
			differ = append(differ, fmt.Sprintf("seed %d: two runs differ from here on:\n%s", seed, difference(first, second)))
		}
	}
	if len(differ) > 1 {
		t.Error(strings.Join(differ, "\n"))
	}
}

// difference shows where two texts part.
func difference(x, y []string) string {
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return strings.Join(x[max(0, i-5):min(len(x), i+5)], "\n") + "\n---\n" + strings.Join(y[max(0, i-5):min(len(y), i+5)], "\n")
		}
	}
	return "one is longer"
}
