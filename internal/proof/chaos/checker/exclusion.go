package checker

import (
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// checkOneValid is guarantee 1, and guarantee 3 as far as a takeover can be too
// early.
func (e *election) checkOneValid(report tell) {
	spans := e.spans()
	told := map[*lease]bool{}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if b.From >= a.Until {
				break
			}
			if e.unknowing(a.lease, b.lease) || e.opened(a.lease, b.From, min(a.Until, b.Until)) {
				continue
			}
			told[b.lease] = true
			report("mx/two-valid", b.From, "guarantee 1: the leases of %s with token %d and of %s with token %d were valid at the same time, for %v at least",
				a.Candidate, a.Token, b.Candidate, b.Token, min(a.Until, b.Until)-b.From)
		}
	}
	for i := 1; i < len(e.leases); i++ {
		if p, b := e.leases[i-1], e.leases[i]; !told[b] {
			e.checkEarly(p, b, report)
		}
	}
	for i := range e.tampering {
		for _, b := range e.leases {
			if !told[b] {
				e.checkVanished(i, b, report)
			}
		}
	}
}

// checkEarly is guarantee 3: a record that its holder had not released stood for
// C before another took it over. b is the next lease after p.
func (e *election) checkEarly(p, b *lease, report tell) {
	if len(b.acquired) == 0 || p.candidate == b.candidate || p.resigned() || p.first.Before >= b.first.At {
		return
	}
	if e.isPartition() && p.ended != nil && p.ended.At <= b.acquired[0].At {
		return // its seat may be replaced by a process that knows the lease to be over
	}
	renewed, ok := e.lastRenewal(p)
	if !ok || len(e.tamperedWith(p, b)) > 0 {
		return
	}
	if sent := e.sentBefore(b.acquired[0]); sent+slack < e.openFrom(p, renewed) {
		report(TooEarly, b.acquired[0].At, "guarantee 3: %s took over with token %d not later than %v after the last renewal of %s, which holds token %d and has not released it; it has to wait for %v",
			b.candidate.name, b.token, sent-renewed, p.candidate.name, p.token, e.rules.Wait)
	}
}

// checkVanished is guarantee 3: a record that was seen and then is gone, or
// went back, counts as held for C of those who had seen it. C begins when they
// see that, so not before it was done.
func (e *election) checkVanished(i int, b *lease, report tell) {
	x := e.tampering[i]
	if len(b.acquired) == 0 || x.Kind == history.Spoiled || e.isPartition() { // its owner may have written it again
		return
	}
	won := b.acquired[0]
	after, ok := e.sentAfter(won)
	if !ok || after <= x.At || e.sentBefore(won)+slack >= x.Before+e.rules.Wait {
		return
	}
	if i+1 < len(e.tampering) && e.tampering[i+1].Before <= won.At {
		return // the record may have come back before anybody missed it
	}
	// C is that of the last TTL seen.
	if !e.seenByAll(i, max(x.Token+1, e.wholeTTL(x.At)), won.At) {
		return
	}
	rule, what := "mx/vanished", "deleted"
	if x.Kind == history.Restored {
		rule, what = "mx/rollback", "rolled back"
	}
	report(rule, won.At, "guarantee 3: %s, which had seen the record, acquired token %d not later than %v after it was %s; it has to wait for %v",
		b.candidate.name, b.token, e.sentBefore(won)-x.Before, what, e.rules.Wait)
}

// tamperedWith returns the indexes of what was done to the record, behind
// everybody's back, while p may have held it and b had not won it yet.
func (e *election) tamperedWith(p, b *lease) (indexes []int) {
	from := p.first.Before - e.rules.Hold
	if isLook(p.first.Kind) {
		from, _ = e.sentAfter(p.first)
	}
	for i, x := range e.tampering {
		if x.At >= from && x.Before <= b.first.At {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// unknowing reports whether b's candidate may not have known that p's lease is
// valid, because the record was tampered with before the candidate, or another
// one after which it came, had seen it. Nothing is promised then. A partition that is
// missing is taken only when all leases are over that anybody may have.
func (e *election) unknowing(p, b *lease) bool {
	for _, i := range e.tamperedWith(p, b) {
		if e.isPartition() && e.tampering[i].Kind != history.Restored {
			continue
		}
		// An earlier state of p's own lease may be what they saw last.
		if e.tampering[i].Token >= p.token || !e.seenByAll(i, p.token, b.first.At) {
			return true
		}
	}
	return false
}

// seenByAll reports whether all candidates that lived between some tampering and
// a moment had seen the record before, with at least that token.
func (e *election) seenByAll(i int, token elector.Token, until time.Duration) bool {
	x := e.tampering[i]
	since := time.Duration(-1)
	if i > 0 {
		since = e.tampering[i-1].At
	}
	for _, c := range e.candidates {
		if c.livedBetween(x.Before, until) && !e.saw(c, token, since, x.Before) {
			return false
		}
	}
	return true
}

func (c *candidate) livedBetween(from, until time.Duration) bool {
	if _, by, dead := c.died(); dead && by <= from {
		return false
	}
	for _, list := range [][]history.Event{c.events, c.done} {
		if len(list) > 0 && list[0].Before <= until {
			return true
		}
	}
	return false
}

// saw reports whether a candidate's elector surely saw a record with at least
// that token as it was after one moment, and before another. (The reads told as
// Observed go through the elector that campaigns, see history.Recorder.)
func (e *election) saw(c *candidate, token elector.Token, since, until time.Duration) bool {
	for _, v := range c.events {
		if v.At >= until {
			break
		}
		if v.Token < token || v.Token == 0 {
			continue
		}
		switch v.Kind {
		case history.Observed:
			if v.Before > since {
				return true
			}
		case history.Waits:
			if since < 0 { // when it was so is not told
				return true
			}
		case history.Acquired, history.Renewed:
			if sent, shows := e.sentAfter(v); shows && sent > since {
				return true
			}
		}
	}
	return false
}
