package checker

import (
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// resting is how long a candidate may rest whose campaign ended because of what
// does not pass by itself, before it campaigns again.
const resting = 2 * time.Second

// A vacancy is the time from when no process can have renewed the record any more
// until a candidate is known to lead.
type vacancy struct {
	last        *lease
	from, until time.Duration
	open        bool // no candidate is known to have led after it
}

// checkTakeover is mx/takeover-bound: a holder that is gone is replaced within
// tau, if anybody waits who is well all that time.
func (e *election) checkTakeover(report tell) {
	if e.isPartition() {
		return // not each member takes over: see checkBack
	}
	for i, p := range e.leases {
		v, ok := e.vacancyAfter(i)
		if !ok {
			continue
		}
		for _, c := range e.candidates {
			if c == p.candidate {
				continue
			}
			from, until, ok := e.undisturbed(v, c)
			if !ok {
				continue
			}
			took := until - from
			if took <= e.rules.Takeover {
				continue
			}
			excuse := c.paused(from, until) + e.slowStore(c, from, until, history.Kind.IsFailure) + e.extended(from, until)
			if took-excuse <= e.rules.Takeover {
				continue
			}
			report("mx/takeover-bound", until, "no candidate led for %v after %s with token %d was gone, although %s waited and was well all the time; it may take %v, and %v more because the process stood still or the store was slow",
				took, p.candidate.name, p.token, c.name, e.rules.Takeover, excuse)
			break
		}
	}
}

// vacancyAfter returns the vacancy after a lease; ok is false if the lease is
// not known to have been the last one for a while, or not to have been over.
func (e *election) vacancyAfter(i int) (v vacancy, ok bool) {
	p := e.leases[i]
	v = vacancy{last: p, until: forever, open: true}
	for _, n := range e.leases[i+1:] {
		if n.token == p.token {
			continue
		}
		v.open = false
		v.until = min(v.until, n.first.Before)
		if len(n.acquired) > 0 {
			if sent, shows := e.sentAfter(n.acquired[0]); shows {
				v.until = min(v.until, sent)
			}
		}
	}
	_, dead, died := p.candidate.died()
	died = died && dead < v.until
	frozen, stopped := p.candidate.frozenAt(v.until)
	ended := p.ended != nil && p.ended.At < v.until
	switch {
	case ended && p.released != nil:
		v.from = max(p.released.At, p.ended.At+e.rules.Request)
	case ended && p.resigned() && died:
		v.from = dead
	case ended && p.resigned():
		v.from = p.ended.At + e.rules.TTL + e.rules.Request // it tries for as long
	case ended:
		v.from = p.ended.At + e.rules.Request // a renewal may have been under way
	case died:
		v.from = dead
	case stopped:
		v.from = frozen + e.rules.Request
	default:
		return v, false
	}
	return v, v.from < v.until
}

// frozenAt returns since when the candidate has been stopped at a moment.
func (c *candidate) frozenAt(at time.Duration) (since time.Duration, ok bool) {
	for _, v := range c.done {
		if v.Kind == history.Stopped && v.At <= at {
			since, ok = v.At, true
		}
		if v.Kind == history.Continued && v.Before < at {
			ok = false
		}
	}
	return since, ok
}

// undisturbed returns the last part of a vacancy in which a candidate waited and
// nothing was broken that could keep it from taking over, and no other process can
// have changed the record.
func (e *election) undisturbed(v vacancy, c *candidate) (from, until time.Duration, ok bool) {
	from, until = v.from, v.until
	if v.open {
		until = c.lived()
	}
	from = max(from, c.readyAt(e.rules.Wait, until))
	if until-from <= e.rules.Takeover {
		return from, until, false
	}
	for _, i := range e.disturbances(v, c) {
		if i.from < until {
			from = max(from, i.until)
		}
	}
	return from, until, from < until
}

// readyAt returns from when a candidate campaigns.
func (c *candidate) readyAt(standsBack, until time.Duration) time.Duration {
	ready := forever
	for _, v := range c.events {
		if v.Kind == history.Opened {
			ready = v.At
			break
		}
	}
	for _, l := range c.leases {
		switch {
		case l.first.Before >= until:
		case l.ended == nil:
			return forever
		default:
			ready = max(ready, l.ended.At)
			if l.resigned() {
				ready = max(ready, l.ended.At+standsBack+resting) // it may have been deposed, or have had enough
			}
		}
	}
	return ready
}

// disturbances returns when something may have kept a waiting candidate from
// taking over, or when another process may have written the record.
func (e *election) disturbances(v vacancy, waits *candidate) (all []interval) {
	request := e.rules.Request
	for _, f := range e.faults {
		f.interval.until = min(f.interval.until+request, forever)
		if f.candidate == "" || f.candidate == waits.name || !e.silences(f, v) {
			all = append(all, f.interval)
			continue
		}
		// A request that was under way when it began, or when it ended, counts.
		all = append(all, interval{f.began.At, f.began.At + request})
		if f.until < forever {
			all = append(all, interval{f.until, f.until + request})
		}
	}
	for i, x := range e.tampering {
		until := x.At
		if x.Kind == history.Spoiled {
			until = forever
			if i+1 < len(e.tampering) {
				until = e.tampering[i+1].At
			}
		}
		all = append(all, interval{x.Before, until})
	}
	for _, x := range e.edits {
		switch {
		case x.bars():
			all = append(all, interval{x.Before, x.stands})
		case x.costs():
			all = append(all, interval{x.Before, x.At})
		}
	}
	for _, x := range e.swaps {
		all = append(all, interval{x.Before, x.At})
	}
	for _, c := range e.candidates {
		for _, x := range c.done {
			switch {
			case x.Kind == history.Started || x.Kind == history.Fault || x.Kind == history.Healed:
			case c != waits && x.Kind == history.Killed:
				all = append(all, interval{x.Before, x.At})
			case c != waits:
				all = append(all, interval{x.Before, x.At + request})
			case x.Kind == history.Continued:
				all = append(all, interval{x.Before, x.At})
			case x.Kind == history.Stopped:
				if _, still := c.frozenAt(v.until); still {
					all = append(all, interval{x.Before, forever})
				}
			default:
				all = append(all, interval{x.Before, forever})
			}
		}
	}
	for _, x := range e.untold {
		if x.Token > v.last.token {
			all = append(all, interval{x.Before, x.At + request})
		}
	}
	return all
}

// silences reports whether nothing that a candidate sends under a fault, long
// after it began, changes the record. Details are those of the faults of
// package network.
func (e *election) silences(f fault, v vacancy) bool {
	switch strings.TrimPrefix(f.detail, "network: ") {
	case "cut", "lose requests", "refuse":
		return true
	case "lose replies", "reset":
		// Requests may arrive. One whose lease is over sends none, and does not
		// see enough to campaign.
		return f.candidate == v.last.candidate.name
	}
	return false
}

// extended returns how much later a takeover may be because extensions were
// changed just then: a write that met one is tried again.
func (e *election) extended(from, until time.Duration) (more time.Duration) {
	for _, x := range e.edits {
		if !x.costs() && x.At >= from && x.Before <= until {
			more += 2 * e.rules.Request
		}
	}
	return more
}

// slowStore returns how much later a takeover may be because the store did not
// answer the waiting candidate, or was slow, without a fault: it
// stands on a machine too. That has a limit: a candidate that never finds back
// to its store is not well.
func (e *election) slowStore(c *candidate, from, until time.Duration, failed func(history.Kind) bool) (more time.Duration) {
	covered := from
	for _, v := range c.events {
		if !failed(v.Kind) {
			continue
		}
		after := e.rules.Renew
		if !ofRequest(v.Detail) {
			after += resting
		}
		i := interval{max(v.At-e.rules.Request, covered), min(v.At+after, until)}
		if i.until > i.from {
			more += i.until - i.from
			covered = i.until
		}
	}
	return min(more, 10*e.rules.Takeover) + 2*c.slowest(from, until)
}

// slowest returns how long the slowest of a candidate's reads took between two
// moments.
func (c *candidate) slowest(from, until time.Duration) (slowest time.Duration) {
	for _, v := range c.events {
		if v.Kind == history.Observed && v.At > from && v.Before < until {
			slowest = max(slowest, v.At-v.Before)
		}
	}
	return slowest
}

// ofRequest reports whether a failure is a single request's, see
// history.Recorder, and not what ended a campaign.
func ofRequest(detail string) bool {
	for _, op := range []string{"load: ", "swap: ", "watch: ", "watch-presence: "} {
		if strings.HasPrefix(detail, op) {
			return true
		}
	}
	return false
}
