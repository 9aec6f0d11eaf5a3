package checker

import (
	"slices"
	"strings"
	"time"

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

// checkGuard is tok/guard, of the data in the store: a guarded write that is sent
// after a newer acquisition is refused; in the store's own order no write stands
// after one with a higher token; and no write is refused whose lease is renewed
// later.
func (e *election) checkGuard(report tell) {
	for _, v := range history.Overtaken(e.events) {
		if v.Kind == history.Committed {
			report("tok/guard", v.At, "the store took write %d of %s with token %d, which was sent after a newer acquisition", v.Number, v.Candidate, v.Token)
		}
	}
	var last history.Event
	for _, v := range e.events {
		switch {
		case v.Kind == history.Kept && v.Token >= last.Token:
			last = v
		case v.Kind == history.Kept && !e.restored(v.Token):
			report("tok/guard", v.At, "in the data, write %d of %s with token %d stands after write %d of %s with token %d",
				v.Number, v.Candidate, v.Token, last.Number, last.Candidate, last.Token)
		case v.Kind == history.Stale && e.renewedAfter(v):
			report("tok/guard", v.At, "the store refused write %d of %s with token %d as stale, and renewed its lease later", v.Number, v.Candidate, v.Token)
		}
	}
}

// restored reports whether a record with the token was written back by hand.
func (e *election) restored(token elector.Token) bool {
	return slices.ContainsFunc(e.tampering, func(x history.Event) bool { return x.Kind == history.Restored && x.Token == token })
}

// renewedAfter reports whether the lease of a write was renewed by a request that
// was sent after the answer, and the record was not changed by hand.
func (e *election) renewedAfter(v history.Event) bool {
	for _, l := range e.leases {
		if l.candidate.name != v.Candidate || l.token != v.Token {
			continue
		}
		since := v.Before
		if e.isPartition() {
			since = 0 // its owner may have written it again
		}
		if renewed, ok := e.lastRenewal(l); ok && renewed > v.At && !e.wentBack(since, forever) && !e.putBack(l, v.At) && !e.edited(l, v.At) && !e.audited(l, v.At) {
			return true
		}
	}
	return false
}

// putBack reports whether the record of a lease was written back by hand before a moment, in
// a state of that lease: it goes on, but a guard that compares when the record was written
// refuses its writes.
func (e *election) putBack(l *lease, before time.Duration) bool {
	return slices.ContainsFunc(e.tampering, func(x history.Event) bool {
		return x.Kind == history.Restored && x.Token == l.token && x.Before <= before
	})
}

// edited reports whether the record of a lease was edited by hand before a moment: some
// guards compare more of it than others.
func (e *election) edited(l *lease, before time.Duration) bool {
	return slices.ContainsFunc(e.edits, func(x edit) bool { return x.lease == l && x.Before <= before })
}

// audited reports whether a partition's lease ended soon after some partition's record was
// changed by hand, before a moment: the guard sees at once what the owner's audit sees later.
func (e *election) audited(l *lease, before time.Duration) bool {
	end := forever
	if l.ended != nil {
		end = l.ended.At
	} else if from, _, dead := l.candidate.died(); dead {
		end = from
	}
	return slices.ContainsFunc(e.faults, func(f fault) bool {
		return strings.HasPrefix(f.detail, "partition: ") && f.from <= before && f.from <= end && end-e.rules.Audit <= f.until
	})
}

// checkAnswers compares what candidates were answered with what the resource
// did, and with what stands in the data.
func (e *election) checkAnswers(report tell) {
	type write struct {
		candidate string
		token     elector.Token
		number    uint64
	}
	of := func(v history.Event) write { return write{v.Candidate, v.Token, v.Number} }
	done, kept := map[write]history.Kind{}, map[write]bool{}
	for _, v := range e.events {
		switch v.Kind {
		case history.Accepted, history.Rejected:
			done[of(v)] = v.Kind
		case history.Kept:
			kept[of(v)] = true
		}
	}
	for _, v := range e.events {
		var want history.Kind
		switch v.Kind {
		case history.Wrote:
			want = history.Accepted
		case history.Refused:
			want = history.Rejected
		case history.Committed, history.Stale:
			// The data of a round that could not go on was not read.
			if len(kept) > 0 && kept[of(v)] != (v.Kind == history.Committed) {
				report("tok/guard", v.At, "%s was told that its write %d with token %d is %s, but in the data it is not so", v.Candidate, v.Number, v.Token, v.Kind)
			}
			continue
		default:
			continue
		}
		if got := done[of(v)]; got != want {
			report("tok/fence", v.At, "%s was told that its write %d with token %d was %s, but the resource has not %s it", v.Candidate, v.Number, v.Token, want, want)
		}
	}
}
