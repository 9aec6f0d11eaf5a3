package report

import (
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A gap is a time without a leader: no process lived that had a lease which was
// surely valid.
type gap struct {
	interval
	how string // one of the constants below

	// counted is the last part of the gap, that in which a candidate could have
	// led: the store was whole, and one candidate at least campaigned
	// undisturbed until the gap's end.
	counted time.Duration

	// bound is how long counted may be.
	bound time.Duration
}

// How a gap ends.
const (
	takeover = "takeover" // a candidate leads after a leader that died or lost its lease
	handover = "handover" // a candidate leads after a leader that resigned and told the store so
	first    = "first"    // the first leader of the election
	ends     = "end"      // with the history
)

func (g gap) length() time.Duration { return g.until - g.from }

func (g gap) late() bool { return g.counted > g.bound }

func (s *story) findGaps() {
	if len(s.lives) == 0 {
		return
	}
	failed := map[leaseKey]bool{} // releases of which the store was not told
	for _, e := range s.events {
		if e.Kind == history.Released && e.Detail != "" {
			failed[leaseKey{e.Candidate, e.Token}] = true
		}
	}
	reach, how := s.lives[0].from, first
	for _, p := range s.spans {
		if p.from > reach {
			s.addGap(interval{reach, p.from}, how)
		}
		until := min(p.until, s.dies(p.candidate))
		if until < reach {
			continue
		}
		reach, how = until, takeover
		if p.resigned() && until == p.until && !failed[leaseKey{p.candidate, p.token}] {
			how = handover
		}
	}
	if last := s.campaignsEnd(); reach < last {
		s.addGap(interval{reach, last}, ends)
	}
}

func (s *story) addGap(i interval, how string) {
	from := i.until // from when one candidate at least was undisturbed
	able := map[*life]time.Duration{}
	for _, l := range s.lives {
		if l.opened != 0 && l.died >= i.until {
			able[l] = undisturbed(max(i.from, l.opened), i.until, l.broken)
			from = min(from, able[l])
		}
	}
	var ofStore []interval
	for _, f := range s.faults {
		if f.candidate == "" && f.lasting {
			ofStore = append(ofStore, f.interval)
		}
	}
	from = max(from, undisturbed(i.from, i.until, ofStore))
	g := gap{interval: i, how: how, counted: i.until - from}
	r := s.election.Rules
	g.bound = r.Takeover
	switch {
	case r.Audit > 0:
		if s.missed(i.until) {
			g.bound += r.Missing()
		}
	case how == handover && from == i.from:
		g.bound = handoverBound(r)
	}
	var stalled time.Duration
	for l, since := range able {
		if since > from {
			continue // another was there all the time
		}
		var sum time.Duration
		for _, t := range l.stalls {
			sum += max(0, min(t.until, i.until)-max(t.from, from))
		}
		stalled = max(stalled, sum)
	}
	g.bound += stalled
	if how == ends && !g.late() && i.until < s.end {
		return // all were told to end, one after the other
	}
	s.gaps = append(s.gaps, g)
}

// missed reports whether the record of a partition was deleted or put back so late before a
// moment that its owner, or another member, may not have written it again.
func (s *story) missed(at time.Duration) bool {
	return slices.ContainsFunc(s.events, func(e history.Event) bool {
		switch e.Kind {
		case history.Removed, history.Restored, history.Spoiled:
			return e.Before <= at && at <= e.At+s.election.Rules.Missing()+s.election.Rules.Takeover
		}
		return false
	})
}

// handoverBound is how long a handover may take on a store that is read at each
// renewal's time: until the next read, two requests, and the random wait.
func handoverBound(r history.Rules) time.Duration {
	return r.Renew + 2*r.Request + 250*time.Millisecond
}

// undisturbed returns the earliest time from which none of the disturbances
// falls before until.
func undisturbed(from, until time.Duration, disturbances []interval) time.Duration {
	for _, d := range disturbances {
		if d.from < until && d.until > from {
			from = min(d.until, until)
		}
	}
	return from
}

// campaignsEnd returns until when there was a candidate that had not been told
// to end.
func (s *story) campaignsEnd() (end time.Duration) {
	for _, l := range s.lives {
		end = max(end, min(l.died, l.told))
	}
	return end
}
