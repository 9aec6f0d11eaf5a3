package cluster

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// verify fails the test for everything that is wrong with a history, and keeps
// it then. What the checker excuses while a store is broken is checked here:
// that a leader is back in time once the store answers again.
func verify(t *testing.T, h *history.History) {
	t.Helper()
	for _, wrong := range takeovers(h) {
		t.Error(wrong)
	}
	for _, v := range checker.Check(h) {
		t.Error(v)
	}
	if t.Failed() {
		f, err := os.CreateTemp("", "elector-history-*.jsonl")
		must(t, err)
		must(t, f.Close())
		must(t, h.Save(f.Name()))
		t.Logf("the history is kept in %s", f.Name())
	}
	t.Log(figures(h))
}

// A span is when a lease was valid beyond doubt: from before the first look
// that found it so to before the last one. It was made before the first, and it
// is never valid again once it was not. What Remaining promises after the last
// look is left out, as the lease may have been given up.
type span struct {
	candidate   string
	token       elector.Token
	first, last history.Event
}

func (s span) String() string {
	return fmt.Sprintf("%s with token %v from %v to %v", s.candidate, s.token, s.first.Before, s.last.Before)
}

// spans are in the order of their tokens.
func spans(h *history.History) (all []*span) {
	type lease struct {
		candidate string
		token     elector.Token
	}
	known := map[lease]*span{}
	for _, e := range h.Events {
		if !e.Valid {
			continue
		}
		of := lease{e.Candidate, e.Token}
		if known[of] == nil {
			known[of] = &span{e.Candidate, e.Token, e, e}
			all = append(all, known[of])
		}
		s := known[of]
		if e.Before < s.first.Before {
			s.first = e
		}
		if e.Before > s.last.Before {
			s.last = e
		}
	}
	slices.SortStableFunc(all, func(a, b *span) int { return cmp.Compare(a.token, b.token) })
	return all
}

// takeovers is that a candidate leads within tau of when the last leader's lease was
// lost, or of when the store answers again if that is later, and what the
// machine stood still meanwhile.
func takeovers(h *history.History) (wrong []string) {
	most := h.Elections[0].Rules.Takeover
	for _, g := range gaps(h) {
		if g.late > most+g.stalls {
			wrong = append(wrong, fmt.Sprintf("no candidate led for %v from %v, when %s had lost the lease and the store answered, to %v; at most %v is right, and the machine stood still for %v",
				g.late, g.from, g.before.candidate, g.after.first.Before, most, g.stalls))
		}
	}
	return wrong
}

// A gap is between a lease that was lost and the next one.
type gap struct {
	before, after      *span
	from, late, stalls time.Duration
}

func gaps(h *history.History) (all []gap) {
	leases := spans(h)
	for i, before := range leases {
		if !lost(h, before) || i+1 == len(leases) {
			continue
		}
		g := gap{before: before, after: leases[i+1], from: before.last.At}
		var fault history.Event
		for _, e := range h.Events {
			switch {
			case e.Kind == history.Fault:
				fault = e
			case e.Kind == history.Healed && e.Detail == answers && e.At > g.from:
				// A leader may have been quicker than the question whether the store answers,
				// or, if the lease was lost to a fault, than the last server that came back.
				begun := e.Before
				if fault.Kind != "" && fault.Before <= before.last.At {
					begun = fault.Before
				}
				if begun < g.after.first.Before {
					g.from = min(e.At, g.after.first.Before)
				}
			}
		}
		g.late = g.after.first.Before - g.from
		g.stalls = stalls(h, g.from, g.after.first.Before)
		all = append(all, g)
	}
	return all
}

func lost(h *history.History, s *span) bool {
	return slices.ContainsFunc(h.Events, func(e history.Event) bool {
		return e.Kind == history.Ended && e.Candidate == s.candidate && e.Token == s.token && strings.HasPrefix(e.Detail, "lost")
	})
}

func stalls(h *history.History, from, to time.Duration) (sum time.Duration) {
	for _, e := range h.Events {
		if e.Kind == history.Stalled && e.At > from && e.At-e.Left < to {
			sum += e.Left
		}
	}
	return sum
}

// figures are for the test's log.
func figures(h *history.History) string {
	var down, late []string
	var fault history.Event
	for _, e := range h.Events {
		if e.Kind == history.Fault {
			fault = e
		}
		if e.Kind == history.Healed && e.Detail == answers {
			down = append(down, (e.At - fault.Before).Round(time.Millisecond).String())
		}
	}
	for _, g := range gaps(h) {
		late = append(late, g.late.Round(time.Millisecond).String())
	}
	return fmt.Sprintf("%d faults, %d leases, %d of them lost; the store answered after %s; the next leader came after %s (at most %v); stalls %v in all",
		len(down), len(spans(h)), len(late), strings.Join(down, " "), strings.Join(late, " "), h.Elections[0].Rules.Takeover, stalls(h, 0, 1<<62).Round(time.Millisecond))
}
