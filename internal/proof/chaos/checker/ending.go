package checker

import (
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// cancelWithin is what part/holder allows from the end of a lease to the end of
// its context.
const cancelWithin = 250 * time.Millisecond

// checkCanceled is guarantee 6, part/holder: the lease's context ends with the
// lease, or before. The worker may have been late to see it while its process
// stood still.
func (e *election) checkCanceled(report tell) {
	for _, l := range e.leases {
		if len(l.acquired) == 0 {
			continue // its worker never had it
		}
		end := time.Duration(0)
		for _, look := range l.looks {
			end = max(end, look.At+look.Left)
		}
		if l.ended != nil {
			end = min(end, l.ended.At)
		}
		c, rule, why := l.candidate, "part/holder", ""
		seen, told := c.lived(), "it had not ended"
		if l.canceled != nil && l.canceled.At <= c.toldToEnd() {
			seen, told = l.canceled.Before, "it ended"
			if l.released != nil && l.released.At < seen {
				rule, why = "res/order", ", and after the store was told"
			}
		}
		if late := seen - end - c.paused(end, seen); late > cancelWithin {
			report(rule, seen, "guarantee 6: the lease of %s with token %d was over, but not its context: %s %v later%s, of which the process can have stood still for %v",
				c.name, l.token, told, seen-end, why, c.paused(end, seen))
		}
	}
}

// lived returns the last moment at which the candidate surely ran and reported
// its stalls, which it does until it is told to end.
func (c *candidate) lived() time.Duration {
	until := c.toldToEnd()
	for _, v := range slices.Backward(c.events) {
		if v.Kind != history.Fatal && v.At <= until {
			return v.Before
		}
	}
	return 0
}

// toldToEnd returns when SIGTERM was sent.
func (c *candidate) toldToEnd() time.Duration {
	for _, v := range c.done {
		if v.Kind == history.Terminated {
			return v.Before
		}
	}
	return forever
}

// checkRelease is guarantee 8, res/order: first the lease is over, then the
// store is told. That it is not valid afterwards is ren/resurrect.
func (e *election) checkRelease(report tell) {
	for _, l := range e.leases {
		if l.released == nil {
			continue
		}
		if l.ended == nil || l.ended.At > l.released.At {
			report("res/order", l.released.At, "guarantee 8: %s told the store that its lease with token %d was over before it was", l.candidate.name, l.token)
		}
	}
}

// checkProcesses reports candidates that gave up, and processes that did not
// end in order although they were not killed.
func (e *election) checkProcesses(report tell) {
	for _, c := range e.candidates {
		fatal, killed := false, false
		for _, v := range c.events {
			if v.Kind == history.Fatal {
				fatal = true
				report(GaveUp, v.At, "%s gave up: %s", c.name, v.Detail)
			}
		}
		for _, v := range c.done {
			killed = killed || v.Kind == history.Killed
			if v.Kind == history.Exited && v.Detail != "" && !killed && !fatal {
				report(GaveUp, v.At, "the process of %s ended although it was not killed: %s", c.name, v.Detail)
			}
		}
	}
}
