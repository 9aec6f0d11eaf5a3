package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// figures are the figures of one store and one kind of fault, or a sum of such.
// See Figures for what each counts.
type figures struct {
	Store, Fault string

	Faults, Elections, Lost    int
	Takeovers, Handovers       gaps
	Longest                    time.Duration // time without a leader, whatever was broken
	Refused, Accepted          int
	Violations, Overlaps, Late int
	Stale                      int
	Tampered                   int            // overlaps after the record was changed by hand
	Overlap                    time.Duration  // the longest
	Classes                    map[string]int // violations by what they are about
}

// gaps are some gaps of one kind.
type gaps struct {
	lengths []time.Duration
	worst   gap
}

func (g *gaps) add(x gap) {
	g.lengths = append(g.lengths, x.counted)
	if len(g.lengths) == 1 || worse(x, g.worst) {
		g.worst = x
	}
}

// worse tells whether a gap is to be shown rather than another: one over its
// bound, and else the longer one.
func worse(a, b gap) bool {
	if a.late() != b.late() {
		return a.late()
	}
	return a.counted > b.counted
}

func (g gaps) Number() int            { return len(g.lengths) }
func (g gaps) Longest() time.Duration { return g.worst.counted }
func (g gaps) Bound() time.Duration   { return g.worst.bound }
func (g gaps) Late() bool             { return g.worst.late() }

func (g gaps) Median() time.Duration {
	if len(g.lengths) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(g.lengths))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (f *figures) addGap(g gap) {
	switch g.how {
	case takeover:
		f.Takeovers.add(g)
	case handover:
		f.Handovers.add(g)
	}
	if g.how != first {
		f.Longest = max(f.Longest, g.length())
	}
	if g.late() {
		f.Late++
	}
}

// merge adds the figures of other.
func (f *figures) merge(o *figures) {
	f.Faults += o.Faults
	f.Elections += o.Elections
	f.Lost += o.Lost
	for _, p := range []struct{ to, from *gaps }{{&f.Takeovers, &o.Takeovers}, {&f.Handovers, &o.Handovers}} {
		if len(p.from.lengths) > 0 && (len(p.to.lengths) == 0 || worse(p.from.worst, p.to.worst)) {
			p.to.worst = p.from.worst
		}
		p.to.lengths = slices.Concat(p.to.lengths, p.from.lengths)
	}
	f.Longest = max(f.Longest, o.Longest)
	f.Refused += o.Refused
	f.Accepted += o.Accepted
	f.Violations += o.Violations
	f.Overlaps += o.Overlaps
	f.Late += o.Late
	f.Stale += o.Stale
	f.Tampered += o.Tampered
	f.Overlap = max(f.Overlap, o.Overlap)
	for class, n := range o.Classes {
		f.violate(class, n)
	}
}

func (f *figures) violate(class string, n int) {
	if f.Classes == nil {
		f.Classes = map[string]int{}
	}
	f.Classes[class] += n
}

// count returns the figures of some stories: a row for each store and kind of
// fault, a sum for each store, and the sum of all.
func count(all []*story) (rows, stores []*figures, sum *figures) {
	sum = &figures{Store: "all"}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.store()) {
			names = append(names, s.store())
		}
	}
	counted := map[faultOfGroup]bool{}
	for _, name := range names {
		of := map[string]*figures{}
		store := &figures{Store: name}
		for _, s := range all {
			if s.store() == name {
				s.count(of, counted)
			}
		}
		var list []*figures
		for _, f := range of {
			f.Store = name
			list = append(list, f)
			store.merge(f)
		}
		slices.SortFunc(list, func(a, b *figures) int {
			return cmp.Or(-cmp.Compare(btoi(a.Fault == noFault), btoi(b.Fault == noFault)), cmp.Compare(a.Fault, b.Fault))
		})
		rows = append(rows, list...)
		stores = append(stores, store)
		sum.merge(store)
	}
	return rows, stores, sum
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A faultOfGroup is one that is recorded for each partition of a group.
type faultOfGroup struct {
	group, kind, candidate string
	from                   time.Duration
}

// store returns the name of the store for the figures: groups are counted apart.
func (s *story) store() string {
	if s.election.Group != "" {
		return s.election.Store + ", groups"
	}
	return s.election.Store
}

func (s *story) count(of map[string]*figures, counted map[faultOfGroup]bool) {
	row := func(kind string) *figures {
		if of[kind] == nil {
			of[kind] = &figures{Fault: kind}
		}
		return of[kind]
	}
	for _, f := range s.faults {
		once := faultOfGroup{s.election.Group, f.kind, f.candidate, f.from}
		if s.election.Group == "" || !counted[once] {
			row(f.kind).Faults++
		}
		counted[once] = true
	}
	for _, e := range s.events {
		switch e.Kind {
		case history.Acquired:
			row(s.blame(s.gapBefore(e.At))).Elections++
		case history.Ended:
			if strings.HasPrefix(e.Detail, "lost") {
				row(s.blame(e.At)).Lost++
			}
		case history.Rejected:
			row(s.blame(e.At)).Refused++
		case history.Accepted:
			row(s.blame(e.At)).Accepted++
		}
	}
	for _, g := range s.gaps {
		row(s.blame(g.from)).addGap(g)
	}
	for _, o := range s.overlaps {
		f := row(s.blame(o.from))
		if o.tampered {
			f.Tampered++
			continue
		}
		f.Overlaps++
		f.Overlap = max(f.Overlap, o.until-o.from)
	}
	for _, e := range s.stale {
		row(s.blame(e.At)).Stale++
	}
	for _, p := range s.problems {
		f := row(s.blame(p.At))
		f.Violations++
		f.violate(p.Class, 1)
	}
}

// gapBefore returns when the gap began that an acquisition ends, or the time of
// the acquisition if there was none.
func (s *story) gapBefore(at time.Duration) time.Duration {
	for _, g := range s.gaps {
		if g.from < at && at <= g.until {
			return g.from
		}
	}
	return at
}
