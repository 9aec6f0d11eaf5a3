package checker

import (
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// checkBack reports an election without a leader that writes, or a partition without an owner,
// for too long although nothing is broken any more.
func (e *election) checkBack(report tell) {
	for _, q := range e.quiets {
		until, written := e.writtenAfter(q.At)
		if until-q.At <= q.Left || e.struck(q.At, q.At+q.Left) {
			continue
		}
		excuse := min(e.slowness(q.At, until), q.Left) // not for ever: it may be what does not come back
		if until-q.At <= q.Left+excuse {
			continue
		}
		what := "a write of a leader came"
		if !written {
			what = "no leader had written"
		}
		report(NotBack, until, "nothing was broken, and %s after %v; it may take %v, and %v more because processes stood still or the store was slow",
			what, until-q.At, q.Left, excuse)
	}
}

// struck reports whether the record was changed by hand, or a process killed, between two
// moments: from then on the next Quiet counts.
func (e *election) struck(from, until time.Duration) bool {
	for _, x := range e.tampering {
		if x.Before >= from && x.Before <= until {
			return true
		}
	}
	for _, c := range e.candidates {
		for _, v := range c.done {
			if v.Kind == history.Killed && v.Before >= from && v.Before <= until {
				return true
			}
		}
	}
	return false
}

// writtenAfter returns when a write was made that was begun after a moment, or the end of
// what is told, and whether there was one.
func (e *election) writtenAfter(at time.Duration) (time.Duration, bool) {
	type write struct {
		candidate string
		number    uint64
	}
	begun := map[write]bool{}
	for _, v := range e.events {
		w := write{v.Candidate, v.Number}
		switch {
		case v.Kind == history.Writing && v.Before >= at:
			begun[w] = true
		case v.Kind == history.Wrote && begun[w]:
			return v.At, true
		case v.Kind == history.Terminated && v.Before >= at:
			return v.Before, false
		}
	}
	return e.events[len(e.events)-1].At, false
}

// slowness returns how much later there may be a leader because processes stood
// still, or because the store was slow without a fault: one after the other, as
// a move is the work of several. A store that refuses is not slow.
func (e *election) slowness(from, until time.Duration) (total time.Duration) {
	failed := func(k history.Kind) bool { return k == history.Trouble }
	for _, c := range e.candidates {
		total += c.paused(from, until) + e.slowStore(c, from, until, failed)
	}
	return total
}
