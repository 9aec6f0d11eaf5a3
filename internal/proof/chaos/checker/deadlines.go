package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// checkDeadlines is guarantee 2: a lease is valid until H after the last
// acknowledged request for it was sent, and never again once it was not.
func (e *election) checkDeadlines(report tell) {
	for _, l := range e.leases {
		e.checkResurrected(l, report)
		e.checkOverdue(l, report)
		for _, look := range l.looks {
			if look.Left > e.rules.Hold+slack {
				report("exp/from-send", look.At, "guarantee 2: the lease of %s with token %d would be valid for %v more, and may never be for more than %v from when a request was sent",
					l.candidate.name, l.token, look.Left, e.rules.Hold)
				break
			}
		}
	}
}

// deadline returns the latest time until which a renewal can have made a lease valid.
// What remains of that on a partition may be less for a while: it is also bound by the
// last audit.
func (e *election) deadline(renewal history.Event) time.Duration {
	if e.isPartition() {
		return renewal.At + e.rules.Hold
	}
	return renewal.At + renewal.Left
}

// over returns when the lease was over at the latest, as its candidate told.
func (l *lease) over() time.Duration {
	over := forever
	if l.ended != nil {
		over = l.ended.At
	}
	for _, look := range l.looks {
		if !look.Valid {
			over = min(over, look.At)
		}
	}
	return over
}

func (e *election) checkResurrected(l *lease, report tell) {
	over := l.over()
	for _, look := range l.looks {
		if look.Valid && look.Before > over {
			report("ren/resurrect", look.At, "guarantee 2: the lease of %s with token %d was over, and %v later it was valid again",
				l.candidate.name, l.token, look.Before-over)
			return
		}
	}
}

// checkOverdue looks for a Check that succeeded after the latest deadline that
// any acknowledged request can have given the lease. A renewal counts from when
// it was answered, and is told after that by the same goroutine: the next one
// that is told, or one that its process could not tell any more, may have
// counted already.
func (e *election) checkOverdue(l *lease, report tell) {
	if len(l.acquired) == 0 {
		return
	}
	var renewals []history.Event // in the order in which their readings began
	for _, k := range l.looks {
		if k.Kind == history.Acquired || k.Kind == history.Renewed {
			renewals = append(renewals, k)
		}
	}
	slices.SortStableFunc(renewals, func(a, b history.Event) int { return cmp.Compare(a.Before, b.Before) })
	over, untold := l.over(), forever
	known := time.Duration(0) // the latest deadline of the renewals so far
	for _, look := range l.looks {
		for len(renewals) > 0 && renewals[0].Before < look.At {
			known = max(known, e.deadline(renewals[0]))
			renewals = renewals[1:]
		}
		if !look.Valid || look.Before > over || known == 0 {
			continue
		}
		latest, complete := known, l.ended != nil
		if len(renewals) > 0 {
			complete = true
			if next := renewals[0]; next.Before+next.Left <= look.At+e.rules.Hold {
				latest = max(latest, e.deadline(next))
			}
		}
		if look.Before <= latest+slack {
			continue
		}
		if !complete {
			untold = min(untold, look.At+e.rules.Hold)
			if look.Before <= untold+slack {
				continue
			}
		}
		report("exp/exact", look.At, "guarantee 2: Check succeeded on the lease of %s with token %d at least %v after its time was over, and it had not been renewed",
			l.candidate.name, l.token, look.Before-latest)
		return
	}
}
