package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// checkTokens is guarantee 5: each acquisition has a token of its own, greater
// than that of any acquisition that was over with when it was sent. That holds
// after a deletion too: all candidates have one machine's time of day.
func (e *election) checkTokens(report tell) {
	type acquisition struct {
		*lease
		won         history.Event
		sent, known time.Duration // applied in between
	}
	var all []acquisition
	for _, l := range e.leases {
		for _, won := range l.acquired {
			sent, shows := e.sentAfter(won)
			if e.isPartition() {
				// When the swap was sent is not told. But all leases before were over
				// when this one began.
				sent, shows = won.Before, won.Valid
			}
			if !shows {
				sent = 0
			}
			all = append(all, acquisition{l, won, sent, won.At})
		}
	}
	slices.SortStableFunc(all, func(a, b acquisition) int { return cmp.Compare(a.known, b.known) })
	highest := make([]acquisition, len(all)) // of all up to each
	winner := map[elector.Token]acquisition{}
	for i, b := range all {
		highest[i] = b
		if i > 0 && highest[i-1].token > b.token {
			highest[i] = highest[i-1]
		}
		if a, twice := winner[b.token]; twice {
			report("tok/strict", b.won.At, "guarantee 5: %s acquired token %d, and so did %s before", b.candidate.name, b.token, a.candidate.name)
			continue
		}
		winner[b.token] = b
		before, _ := slices.BinarySearchFunc(all[:i], b.sent, func(a acquisition, sent time.Duration) int { return cmp.Compare(a.known, sent) })
		if before == 0 {
			continue
		}
		if a := highest[before-1]; a.token > b.token {
			report("tok/strict", b.won.At, "guarantee 5: %s acquired token %d after %s had acquired token %d", b.candidate.name, b.token, a.candidate.name, a.token)
		}
	}
}

// checkObserved is obs/monotonic for the reads of each candidate: each was
// answered before the next one was sent.
func (e *election) checkObserved(report tell) {
	for _, c := range e.candidates {
		var last *history.Event // with the highest token
		for i, v := range c.events {
			if v.Kind != history.Observed {
				continue
			}
			if last != nil && last.At < v.Before && v.Token < last.Token && !e.wentBack(last.Before, v.At) {
				report("obs/monotonic", v.At, "guarantee 5: %s observed token %d after it had observed token %d, and the record was not changed behind its back", c.name, v.Token, last.Token)
			}
			if last == nil || v.Token >= last.Token || e.wentBack(last.Before, v.At) {
				last = &c.events[i]
			}
		}
	}
}

// wentBack reports whether the record was tampered with between two moments.
func (e *election) wentBack(from, until time.Duration) bool {
	for _, x := range e.tampering {
		if x.Before <= until && x.At >= from {
			return true
		}
	}
	return false
}
