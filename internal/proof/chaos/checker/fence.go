package checker

import (
	"slices"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// checkFence is tok/fence: the resource takes no write whose token is lower than
// that of one it took before, and refuses none unless one with a higher token has
// come.
func (e *election) checkFence(report tell) {
	var highest history.Event
	var came []history.Event
	for _, v := range e.events {
		if v.Kind == history.Accepted || v.Kind == history.Rejected {
			came = append(came, v)
		}
	}
	for _, v := range came {
		switch {
		case v.Kind == history.Accepted && v.Token < highest.Token:
			report("tok/fence", v.At, "the resource took write %d of %s with token %d after write %d of %s with token %d",
				v.Number, v.Candidate, v.Token, highest.Number, highest.Candidate, highest.Token)
		case v.Kind == history.Accepted:
			highest = v
		case !slices.ContainsFunc(came, func(w history.Event) bool { return w.Token > v.Token && w.Before <= v.At }):
			report("tok/fence", v.At, "the resource refused write %d of %s with token %d as stale, and none with a higher one had come", v.Number, v.Candidate, v.Token)
		}
	}
}

// checkAnswers compares what candidates were answered with what the resource
// did.
func (e *election) checkAnswers(report tell) {
	type write struct {
		candidate string
		token     elector.Token
		number    uint64
	}
	done := map[write]history.Kind{}
	for _, v := range e.events {
		if v.Kind == history.Accepted || v.Kind == history.Rejected {
			done[write{v.Candidate, v.Token, v.Number}] = v.Kind
		}
	}
	for _, v := range e.events {
		var want history.Kind
		switch v.Kind {
		case history.Wrote:
			want = history.Accepted
		case history.Refused:
			want = history.Rejected
		default:
			continue
		}
		if got := done[write{v.Candidate, v.Token, v.Number}]; got != want {
			report("tok/fence", v.At, "%s was told that its write %d with token %d was %s, but the resource has not %s it", v.Candidate, v.Number, v.Token, want, want)
		}
	}
}
