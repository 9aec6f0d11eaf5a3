package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A Span is the time in which a lease was valid beyond doubt.
type Span struct {
	Candidate   string
	Token       elector.Token
	From, Until time.Duration // on BootTime
	How         string        // how it ended: "resigned", "lost", "killed", or "" if no end was reported
}

// Spans returns the time in which each lease of an election was valid beyond
// doubt, in the order of From. A lease that never was is left out.
//
// It is valid from the first look at which Check had succeeded until the
// earliest time that Remaining allows after the last one, or until the candidate
// told that it was over if that comes before. That it was killed ends nothing:
// a successor must wait as for one that lives.
func Spans(h *history.History, election string) []Span {
	var spans []Span
	for _, s := range digest(election, history.Rules{}, h.Of(election)).spans() {
		spans = append(spans, s.Span)
	}
	return spans
}

// A span knows its lease.
type span struct {
	Span
	lease *lease
}

func (e *election) spans() (spans []span) {
	for _, l := range e.leases {
		s := span{Span{Candidate: l.candidate.name, Token: l.token}, l}
		valid := false
		for _, look := range l.looks {
			if !look.Valid || l.ended != nil && look.Before > l.ended.At {
				continue
			}
			if !valid {
				s.From, valid = look.At, true
			}
			s.Until = max(s.Until, look.Before+max(look.Left, 0))
		}
		s.How = l.how()
		s.Until = min(s.Until, l.over())
		if valid && s.Until > s.From {
			spans = append(spans, s)
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.From, b.From) })
	return spans
}

func (l *lease) how() string {
	switch _, _, dead := l.candidate.died(); {
	case l.isLost():
		return "lost"
	case l.ended != nil:
		return "resigned"
	case dead:
		return "killed"
	}
	return ""
}
