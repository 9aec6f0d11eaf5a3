package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A judgement is the whole history in a few words.
type judgement struct {
	Good   bool // nothing was found
	Title  string
	Text   string // the figures in a sentence
	Leader string // the longest time without a leader against its bound
}

func verdict(sum *figures) judgement {
	v := judgement{Good: sum.Violations == 0 && sum.Overlaps == 0 && sum.Stale == 0}
	switch {
	case sum.Elections == 0:
		v.Good = false
		v.Title = "Nothing was shown: no candidate was ever elected."
	case v.Good:
		v.Title = "Never two leaders, never a stale write."
	case sum.Violations == sum.Classes[account] && sum.Overlaps == 0 && sum.Stale == 0:
		v.Title = "No promise was seen broken, but the account does not add up."
	default:
		v.Title = "The promises were broken."
	}
	overlaps := plural(sum.Overlaps, "overlap", "overlaps") + " of valid leases"
	if sum.Overlap > 0 {
		overlaps += " (the longest of " + length(sum.Overlap) + ")"
	}
	if sum.Tampered > 0 {
		overlaps += fmt.Sprintf(" (and %d after the record was changed by hand, by a candidate that could not know)", sum.Tampered)
	}
	v.Text = strings.Join([]string{
		plural(sum.Faults, "fault", "faults"),
		plural(sum.Elections, "election", "elections"),
		overlaps,
		plural(sum.Stale, "stale write", "stale writes") + " accepted, " + thousands(sum.Refused) + " refused",
		violations(sum),
	}, ", ") + "."
	worst := sum.Takeovers
	if worst.Number() == 0 || sum.Handovers.Number() > 0 && worse(sum.Handovers.worst, worst.worst) {
		worst = sum.Handovers
	}
	if worst.Number() > 0 {
		v.Leader = fmt.Sprintf("The longest time without a leader while a candidate could have led: %s, its bound is %s.", length(worst.Longest()), length(worst.Bound()))
	}
	if sum.Late > 0 {
		v.Leader += " " + plural(sum.Late, "gap is", "gaps are") + " over the bound."
	}
	v.Leader = strings.TrimSpace(v.Leader)
	return v
}

// violations says how many there are, and what they are about.
func violations(sum *figures) string {
	var classes []string
	for _, class := range slices.Sorted(maps.Keys(sum.Classes)) {
		if class != "" {
			classes = append(classes, fmt.Sprintf("%d of %s", sum.Classes[class], class))
		}
	}
	text := plural(sum.Violations, "violation", "violations")
	if len(classes) > 0 {
		text += " (" + strings.Join(classes, ", ") + ")"
	}
	return text
}

// A finding is something to look at first: a problem that the checker reported,
// or an overlap or stale write that drawing found by itself.
type finding struct {
	Store, Election, Rule, Text string
	When                        string        // since the beginning of the history; empty if not known
	Row                         string        // where it is drawn, on the page
	at                          time.Duration // since the beginning of the history
}

func findings(all []*story) []finding {
	var list []finding
	for _, s := range all {
		add := func(at time.Duration, rule, text string) {
			f := finding{Store: s.election.Store, Election: s.election.Name, Rule: rule, Text: text, at: at - s.begin}
			if s.begin <= at && at <= s.end {
				f.When = clock(f.at)
			}
			list = append(list, f)
		}
		for _, p := range s.problems {
			rule := p.Rule
			if p.Class != "" {
				rule += " (" + p.Class + ")"
			}
			add(p.At, rule, p.Text)
		}
		for _, o := range s.overlaps {
			rule := "overlap"
			if o.tampered {
				rule = "overlap after the record was changed by hand"
			}
			add(o.from, rule, fmt.Sprintf("%s with token %v and %s with token %v had valid leases for %s.", o.one.candidate, o.one.token, o.other.candidate, o.other.token, length(o.until-o.from)))
		}
		for _, e := range s.stale {
			add(e.At, "stale write", fmt.Sprintf("write %d of %s was accepted, though its token %v is not the highest.", e.Number, e.Candidate, e.Token))
		}
	}
	slices.SortStableFunc(list, func(a, b finding) int { return cmp.Compare(a.at, b.at) })
	return list
}
