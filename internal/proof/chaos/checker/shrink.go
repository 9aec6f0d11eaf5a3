package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// shrinkTime is how long one violation is shrunk for at most.
const shrinkTime = 2 * time.Second

// shrink returns few events of an election that show the same violation. It
// leaves out what is far away in time first, then whole leases, then single
// events that nothing else depends on, as long as the rest shows the same.
func shrink(e history.Election, events []history.Event, v Violation, deadline time.Time) []history.Event {
	if end := time.Now().Add(shrinkTime); end.Before(deadline) {
		deadline = end
	}
	if v.Rule == Undecided {
		return events
	}
	same := func(rest []history.Event) bool {
		d := digest(e.Name, e.Rules, rest)
		found := d.checkDirectly()
		if v.Rule == Linearizable && len(found) == 0 {
			found = d.checkOrder(orderTimeout)
		}
		return slices.ContainsFunc(found, func(w Violation) bool { return w.Rule == v.Rule && w.Text == v.Text })
	}
	if v.Rule != Linearizable {
		for _, ttls := range []time.Duration{2, 8, 32} {
			if rest := near(events, v.At, ttls*e.Rules.TTL); same(rest) {
				events = rest
				break
			}
		}
	}
	for _, group := range []func(history.Event) string{leaseOf, partOf} {
		events = without(events, group, same, deadline)
	}
	return events
}

// near leaves out what was told long before or after some time, but for what
// leases and processes began and ended with, and what was broken.
func near(events []history.Event, at, distance time.Duration) (kept []history.Event) {
	within := func(e history.Event) bool { return e.At >= at-distance && e.Before <= at+distance }
	tokens := map[elector.Token]bool{}
	for _, e := range events {
		if within(e) {
			tokens[e.Token] = true
		}
	}
	for _, e := range events {
		frame := e.Kind == history.Acquired || ofLease(e.Kind) && !isLook(e.Kind)
		switch {
		case within(e), frame && tokens[e.Token]:
			kept = append(kept, e)
		case frame, isLook(e.Kind), e.Number != 0:
		case e.Kind == history.Observed, e.Kind == history.Waits, e.Kind.IsFailure(), e.Kind == history.Stalled, e.Kind == history.Shown:
		default:
			kept = append(kept, e)
		}
	}
	return kept
}

// without leaves out groups of events, many at a time as long as that goes.
func without(events []history.Event, group func(history.Event) string, same func([]history.Event) bool, deadline time.Time) []history.Event {
	var names []string
	seen := map[string]bool{}
	for _, e := range events {
		if g := group(e); g != "" && !seen[g] {
			seen[g] = true
			names = append(names, g)
		}
	}
	for size := (len(names) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(names); {
			if time.Now().After(deadline) {
				return events
			}
			end := min(at+size, len(names))
			out := map[string]bool{}
			for _, g := range names[at:end] {
				out[g] = true
			}
			rest := slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return out[group(e)] })
			if same(rest) {
				events, names = rest, slices.Delete(names, at, end)
			} else {
				at = end
			}
		}
	}
	return events
}

// leaseOf groups all events with one token.
func leaseOf(e history.Event) string {
	if e.Token == 0 || e.Kind == history.Restored || e.Kind == history.Edited {
		return ""
	}
	return fmt.Sprint("token ", e.Token)
}

// partOf groups what only makes sense together: what is left must not show that
// a lease did not end, or that a write was not answered, because that was left
// out.
func partOf(e history.Event) string {
	switch e.Kind {
	case history.Writing, history.Wrote, history.Refused, history.Failed, history.Accepted, history.Rejected,
		history.Committed, history.Stale, history.Doubtful, history.Kept:
		return fmt.Sprint("write ", e.Candidate, e.Token, e.Number)
	case history.Checked, history.Renewed, history.Observed, history.Waits, history.Trouble, history.Denied, history.Foreign, history.Stalled, history.Shown:
		return fmt.Sprint("event ", e.Candidate, e.Kind, e.At)
	case history.Fault, history.Healed:
		return fmt.Sprint("fault ", e.Candidate, e.Detail)
	case history.Opened, history.Started, history.Killed, history.Stopped, history.Continued, history.Terminated, history.Exited, history.Fatal:
		return fmt.Sprint("process ", e.Candidate)
	}
	return ""
}
