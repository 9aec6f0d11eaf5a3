package checker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// An election is what the events of one election tell, in order.
type election struct {
	name       string
	rules      history.Rules
	events     []history.Event
	leases     []*lease // in the order of their tokens, then of their first events
	candidates map[string]*candidate
	tampering  []history.Event // Removed, Restored and Spoiled
	edits      []edit          // in their order
	shown      []history.Event // what the campaign itself read
	faults     []fault
	untold     []history.Event // views of leases whose acquisition no candidate reported
	swaps      []history.Event // Discarded
	quiets     []history.Event // Quiet
}

// isPartition reports whether it is a partition of a group: its lease begins with a swap
// of its own record, and is then renewed with that of its owner's seat.
func (e *election) isPartition() bool { return e.rules.Audit > 0 }

// A lease is what its candidate reported about it.
type lease struct {
	candidate *candidate
	token     elector.Token
	first     history.Event   // of any kind
	looks     []history.Event // Acquired, Renewed, Checked, Writing
	acquired  []history.Event // one, or something is wrong
	ended     *history.Event  // the first, as the next two
	canceled  *history.Event
	released  *history.Event

	// cutOff is set if the process died when the store may just have been told:
	// a lost lease is once its worker has returned.
	cutOff bool
}

// A candidate is what it reported, and what was done to it.
type candidate struct {
	name   string
	events []history.Event // its own
	done   []history.Event // that others reported about it, but for the resource and the data
	leases []*lease
	stalls []interval
	stops  []interval // from SIGSTOP to SIGCONT
}

// An interval is a stretch of time, for the longest that it may have been.
type interval struct{ from, until time.Duration }

// A fault is something that was broken until it was mended.
type fault struct {
	candidate string // empty for the store
	detail    string
	began     history.Event
	interval
}

// forever is later than any event.
const forever = time.Duration(1<<62 - 1)

// slack is how far two readings of clocks that go alike may be apart.
const slack = time.Millisecond

func digest(name string, rules history.Rules, events []history.Event) *election {
	e := &election{name: name, rules: rules, events: events, candidates: map[string]*candidate{}}
	type key struct {
		candidate string
		token     elector.Token
	}
	leases := map[key]*lease{}
	for _, v := range events {
		switch v.Kind {
		case history.Removed, history.Restored, history.Spoiled:
			e.tampering = append(e.tampering, v)
			continue
		case history.Edited:
			e.edits = append(e.edits, edit{Event: v})
			continue
		case history.Shown:
			e.shown = append(e.shown, v)
			continue
		case history.Quiet:
			e.quiets = append(e.quiets, v)
			continue
		case history.Fault:
			e.faults = append(e.faults, fault{v.Candidate, v.Detail, v, interval{v.Before, forever}})
		case history.Healed:
			for i := range e.faults {
				if f := &e.faults[i]; f.until == forever && f.candidate == v.Candidate && f.detail == v.Detail {
					f.until = v.At
				}
			}
		}
		if v.Candidate == "" || v.Kind == history.Accepted || v.Kind == history.Rejected || v.Kind == history.Kept {
			continue
		}
		c := e.candidates[v.Candidate]
		if c == nil {
			c = &candidate{name: v.Candidate}
			e.candidates[v.Candidate] = c
		}
		c.add(v)
		if v.Kind == history.Discarded {
			e.swaps = append(e.swaps, v)
		}
		if !ofLease(v.Kind) {
			continue
		}
		k := key{v.Candidate, v.Token}
		l := leases[k]
		if l == nil {
			l = &lease{candidate: c, token: v.Token, first: v}
			leases[k] = l
			c.leases = append(c.leases, l)
			e.leases = append(e.leases, l)
		}
		l.add(v)
	}
	e.leases = slices.DeleteFunc(e.leases, (*lease).retracted)
	for _, c := range e.candidates {
		c.leases = slices.DeleteFunc(c.leases, (*lease).retracted)
	}
	slices.SortStableFunc(e.leases, func(a, b *lease) int { return cmp.Compare(a.token, b.token) })
	for _, l := range e.leases {
		if from, _, dead := l.candidate.died(); dead && l.ended != nil {
			l.cutOff = from-l.candidate.paused(l.ended.At, from) <= l.ended.At+rules.TTL+rules.Request
		}
	}
	led := map[elector.Token]bool{}
	for _, l := range e.leases {
		led[l.token] = led[l.token] || len(l.acquired) > 0
	}
	for _, v := range events {
		if (v.Kind == history.Observed || v.Kind == history.Waits) && v.Token != 0 && !led[v.Token] {
			e.untold = append(e.untold, v)
		}
	}
	// What a broken store lost is reported when a process finds out.
	for i := range e.tampering {
		x := &e.tampering[i]
		for _, f := range e.faults {
			if f.candidate == "" && f.from < x.Before && x.At <= f.until {
				x.Before = f.from
			}
		}
	}
	e.link()
	return e
}

func ofLease(k history.Kind) bool {
	return isLook(k) || k == history.Ended || k == history.Canceled || k == history.Released
}

func (c *candidate) add(v history.Event) {
	switch v.Kind {
	case history.Started, history.Killed, history.Terminated, history.Exited, history.Fault, history.Healed:
		c.done = append(c.done, v)
		return
	case history.Stopped:
		c.done = append(c.done, v)
		c.stops = append(c.stops, interval{v.Before, forever})
		return
	case history.Continued:
		c.done = append(c.done, v)
		if n := len(c.stops); n > 0 && c.stops[n-1].until == forever {
			c.stops[n-1].until = v.At
		}
		return
	case history.Fatal:
		c.done = append(c.done, v)
	case history.Stalled:
		c.stalls = append(c.stalls, interval{v.At - v.Left, v.At})
	}
	c.events = append(c.events, v)
}

func (l *lease) add(v history.Event) {
	keep := func(p **history.Event) {
		if *p == nil {
			*p = &v
		}
	}
	switch v.Kind {
	case history.Acquired:
		l.acquired = append(l.acquired, v)
	case history.Ended:
		keep(&l.ended)
	case history.Canceled:
		keep(&l.canceled)
	case history.Released:
		keep(&l.released)
	}
	if isLook(v.Kind) {
		l.looks = append(l.looks, v)
	}
}

// sentAfter returns a time before which the request cannot have been sent from
// which the lease counted when the look was taken; ok is false if it does not
// show that.
func (e *election) sentAfter(look history.Event) (t time.Duration, ok bool) {
	return look.Before + look.Left - e.rules.Hold, look.Left > 0
}

// sentBefore returns a time before which that request was sent, and the swap that
// acquired a partition.
func (e *election) sentBefore(look history.Event) time.Duration {
	if look.Left <= 0 || e.isPartition() {
		return look.At
	}
	return min(look.At, look.At+look.Left-e.rules.Hold)
}

// lastRenewal returns a time after which the store has acknowledged a request
// for the lease that was sent later.
func (e *election) lastRenewal(l *lease) (last time.Duration, ok bool) {
	for _, look := range l.looks {
		if t, shows := e.sentAfter(look); shows && (!ok || t > last) {
			last, ok = t, true
		}
	}
	return last, ok
}

// resigned reports whether the store was, or may have been, told that the lease
// is over before it would have expired.
func (l *lease) resigned() bool {
	if l.released != nil {
		return true
	}
	return l.ended != nil && (!l.isLost() || l.isDeposed() || l.cutOff)
}

// retracted reports whether it was no lease, but a write that was taken back by a
// campaign that was told to end: of that only the release is told.
func (l *lease) retracted() bool { return len(l.looks) == 0 && l.ended == nil && l.canceled == nil }

// isLost reports whether the candidate told that it has lost the lease.
func (l *lease) isLost() bool {
	return l.ended != nil && strings.HasPrefix(l.ended.Detail, "lost:")
}

// isDeposed reports whether its mark of presence was removed.
func (l *lease) isDeposed() bool {
	return l.ended != nil && strings.Contains(l.ended.Detail, elector.ErrDeposed.Error())
}

// died returns when the candidate's process was surely dead by, and from when
// it may have been.
func (c *candidate) died() (from, by time.Duration, dead bool) {
	for _, v := range c.done {
		if v.Kind == history.Killed || v.Kind == history.Exited {
			return v.Before, v.At, true
		}
	}
	return 0, 0, false
}

// paused returns for how much of the time from one moment to another the
// candidate may have stood still.
func (c *candidate) paused(from, until time.Duration) (total time.Duration) {
	for _, list := range [][]interval{c.stalls, c.stops} {
		for _, i := range list {
			if d := min(i.until, until) - max(i.from, from); d > 0 {
				total += d
			}
		}
	}
	return total
}
