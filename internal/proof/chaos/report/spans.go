package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A span is the time in which one lease was surely valid: from when a look at
// it succeeded first until its deadline by its looks, or until its candidate
// told that it is over, whichever came first. The death of its process does not
// end it: the store and the other candidates do not know of it.
type span struct {
	candidate   string
	token       elector.Token
	from, until time.Duration
	end         string // what Ended told; empty if no end was reported
}

// resigned tells whether the lease was given back on purpose.
func (s span) resigned() bool { return strings.HasPrefix(s.end, "resigned") }

type leaseKey struct {
	candidate string
	token     elector.Token
}

// spansOf returns the spans of one election's events, by their beginning.
func spansOf(events []history.Event) []span {
	type ends struct{ ended, canceled, look time.Duration }
	spans := map[leaseKey]*span{}
	told := map[leaseKey]*ends{}
	for _, e := range events {
		if e.Token == 0 || e.Candidate == "" {
			continue
		}
		k := leaseKey{e.Candidate, e.Token}
		t := told[k]
		if t == nil {
			t = &ends{}
			told[k] = t
		}
		switch {
		case e.Kind == history.Ended && t.ended == 0:
			t.ended = e.At
			if s := spans[k]; s != nil {
				s.end = e.Detail
			}
		case e.Kind == history.Canceled && t.canceled == 0:
			t.canceled = e.At
		case e.Valid:
			t.look = e.At
			if s := spans[k]; s != nil {
				s.until = max(s.until, e.Before+e.Left)
			} else {
				spans[k] = &span{candidate: k.candidate, token: k.token, from: e.At, until: e.Before + e.Left}
			}
		}
	}
	var list []span
	for k, s := range spans {
		t := told[k]
		switch {
		case t.ended != 0:
			s.until = min(s.until, t.ended)
		case t.canceled != 0: // a worker that drains still has a valid lease
			s.until = min(s.until, max(t.canceled, t.look))
		}
		if s.until > s.from {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.token, b.token), cmp.Compare(a.candidate, b.candidate))
	})
	return list
}
