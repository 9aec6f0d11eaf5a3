package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// A tally adds up what the seeds of a random campaign saw.
type tally struct {
	mutex     sync.Mutex
	seeds     int
	elections int
	stray     int
	unseen    int
	byHand    int
	wild      int
	shared    int
	joined    int
	bids      [bidKinds]int
	pauses    [2]int
	time      time.Duration
	counts    [faultKinds]int
	taken     map[string]int // steps of the specification
}

func (a *tally) add(w *world, s *storm) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.seeds++
	a.elections += w.check.elections
	a.stray += w.check.stray
	a.unseen += w.check.unseen
	a.byHand += w.check.byHand
	if s.wild != nil {
		a.wild++
	}
	a.time += w.lasted
	for k, n := range w.check.bids {
		a.bids[k] += n
	}
	for i, n := range w.check.pauses {
		a.pauses[i] += n
	}
	for _, n := range w.all() {
		a.shared += n.link.shared
		a.joined += n.link.joined
		for step, count := range n.trail.counts() {
			a.taken[step] += count
		}
	}
	for k, n := range s.counts {
		a.counts[k] += n
	}
}

// report prints the sums, and fails if a kind of fault never happened although
// there were seeds enough.
func (a *tally) report(t *testing.T) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var b strings.Builder
	out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "seeds\t%d\n", a.seeds)
	fmt.Fprintf(out, "wild ones of them\t%d\n", a.wild)
	fmt.Fprintf(out, "elections\t%d\n", a.elections)
	fmt.Fprintf(out, "simulated hours\t%.1f\n", a.time.Hours())
	fmt.Fprintf(out, "overlaps: the winner had not seen the lost record\t%d\n", a.stray)
	fmt.Fprintf(out, "overlaps: suspended, and the wall clock hides it\t%d\n", a.unseen)
	fmt.Fprintf(out, "overlaps: the record had been edited\t%d\n", a.byHand)
	fmt.Fprintf(out, "writes that went with another election's\t%d\n", a.shared)
	fmt.Fprintf(out, "reads that went with another election's\t%d\n", a.joined)
	if (a.shared == 0 || a.joined == 0) && a.seeds >= 100 {
		t.Errorf("in %d seeds no write or no read went with another one", a.seeds)
	}
	fmt.Fprintf(out, "pauses\t%d\n", a.pauses[0])
	fmt.Fprintf(out, "pauses that a candidate has waited out\t%d\n", a.pauses[1])
	if (a.pauses[0] == 0 || a.pauses[1] == 0) && a.seeds >= 100 {
		t.Errorf("in %d seeds no election was paused, or no candidate has waited out a pause", a.seeds)
	}
	for k, n := range a.bids {
		fmt.Fprintf(out, "%v\t%d\n", bidKind(k), n)
		if n == 0 && a.seeds >= 100 {
			t.Errorf("in %d seeds no candidate made one of the %v", a.seeds, bidKind(k))
		}
	}
	for k, n := range a.counts {
		fmt.Fprintf(out, "%v\t%d\n", faultKind(k), n)
		if n == 0 && a.seeds >= 100 {
			t.Errorf("in %d seeds the fault %q never happened", a.seeds, faultKind(k))
		}
	}
	for _, step := range slices.Sorted(maps.Keys(a.taken)) {
		fmt.Fprintf(out, "step %s\t%d\n", step, a.taken[step])
	}
	if missing := untaken(a.taken); len(missing) > 0 {
		fmt.Fprintf(out, "steps of %s that no seed took:\t%s\n", stepsFile, strings.Join(missing, "; "))
	}
	out.Flush()
	t.Logf("\n%s", b.String())
}
