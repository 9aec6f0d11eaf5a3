package checker

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// An edit is one thing that was changed by hand in a record.
type edit struct {
	history.Event
	lease *lease // whose record it was; nil if no candidate reported it

	// stands is until when it stands if no candidate writes: until the same is
	// changed by hand again, or the whole record is.
	stands time.Duration
}

// link finds what the edits are about.
func (e *election) link() {
	for i := range e.edits {
		x := &e.edits[i]
		for _, l := range e.leases {
			if l.token == x.Token && len(l.acquired) > 0 {
				x.lease = l
			}
		}
		x.stands = forever
		for _, y := range e.tampering {
			if y.At >= x.Before {
				x.stands = min(x.stands, y.Before)
			}
		}
		what, _, _ := x.Extension()
		for _, y := range e.edits[i+1:] {
			if again, _, _ := y.Extension(); again == what {
				x.stands = min(x.stands, y.Before)
			}
		}
	}
}

// rule returns the case that the edit is for.
func (x edit) rule() string {
	name, _, ok := x.Extension()
	switch {
	case !ok:
		return "rec/edited"
	case strings.HasPrefix(name, "c_"):
		return "rec/critical"
	case strings.HasPrefix(name, "k_"):
		return "rec/kept"
	}
	return "rec/term"
}

// bars reports whether the edit keeps everybody from the record.
func (x edit) bars() bool {
	_, value, _ := x.Extension()
	return x.rule() == "rec/critical" && value != ""
}

// costs reports whether a holder has lost whose record shows the edit.
func (x edit) costs() bool { return x.rule() == "rec/edited" || x.bars() }

// letsIn reports whether the edit lets others take over from a holder that does
// not know of it yet.
func (x edit) letsIn() bool {
	return x.Detail == history.EditedHolder || x.Detail == history.EditedTTL
}

// nextRenewal is how long after an edit its holder knows of it, at most: the
// next renewal begins within Renew, or a quarter later if one has just failed,
// and is answered.
func (e *election) nextRenewal() time.Duration {
	return e.rules.Renew + e.rules.Renew/4 + e.rules.Request
}

// checkEdited is rec/edited, and rec/critical for the holder: what it did not
// write is a loss at its next renewal. An extension of another class costs it
// nothing.
func (e *election) checkEdited(report tell) {
	for _, x := range e.edits {
		switch {
		case x.lease == nil:
		case x.costs():
			e.checkLoses(x, report)
		default:
			e.checkSpared(x, report)
		}
	}
}

func (e *election) checkLoses(x edit, report tell) {
	l, c := x.lease, x.lease.candidate
	for _, look := range l.looks {
		sent, shows := e.sentAfter(look)
		if shows && sent > x.At+slack && look.At < x.stands {
			report(x.rule(), look.At, "%s leads on with token %d by a renewal that it sent %v, or more, after its record was edited (%s); what it did not write is a loss",
				c.name, l.token, sent-x.At, x.Detail)
			return
		}
	}
	end := c.lived()
	if l.ended != nil {
		end = min(l.ended.Before, c.toldToEnd())
	}
	if e.knownBy(x, end) || end >= x.stands {
		return
	}
	report(x.rule(), end, "%s did not say for %v that it had lost its lease with token %d, whose record was edited (%s); it may take %v",
		c.name, end-x.At, l.token, x.Detail, e.nextRenewal())
}

// knownBy reports whether the holder need not know of an edit before a moment,
// or cannot: it stood still, or its requests failed.
func (e *election) knownBy(x edit, at time.Duration) bool {
	c := x.lease.candidate
	due := x.At + e.nextRenewal() + c.paused(x.Before, at) + 2*c.slowest(x.Before, at)
	return at <= due || e.disturbed(c, x.Before-e.rules.Request, due)
}

// disturbed reports whether something was broken for a candidate, or failed,
// between two moments. A conflict is an answer.
func (e *election) disturbed(c *candidate, from, until time.Duration) bool {
	for _, f := range e.faults {
		if (f.candidate == "" || f.candidate == c.name) && f.from <= until && f.until >= from {
			return true
		}
	}
	for _, v := range c.events {
		if v.Kind.IsFailure() && v.Before <= until && v.At >= from && !strings.Contains(v.Detail, backends.ErrConflict.Error()) {
			return true
		}
	}
	return false
}

// checkSpared is the part of rec/kept and rec/term that is for the holder: it
// goes on. Its lease was lost for the edit if that came soon after, before its
// time was over, and for no other reason.
func (e *election) checkSpared(x edit, report tell) {
	l, c := x.lease, x.lease.candidate
	if !l.isLost() || l.isDeposed() || l.ended.At <= x.Before || !e.knownBy(x, l.ended.Before) {
		return
	}
	deadline := time.Duration(0)
	for _, look := range l.looks {
		if look.Valid {
			deadline = max(deadline, look.Before+look.Left)
		}
	}
	if l.ended.At+slack >= deadline || e.disturbed(c, x.Before-e.rules.Request, l.ended.At) || e.wentBack(l.first.Before-e.rules.Hold, l.ended.At) {
		return
	}
	for _, y := range e.edits {
		if y.lease == l && y.costs() {
			return
		}
	}
	for _, n := range e.leases {
		if n.token > l.token && n.first.Before <= l.ended.At {
			return
		}
	}
	report(x.rule(), l.ended.At, "%s lost its lease with token %d %v before its end, after nothing but an extension of its record was changed (%s)",
		c.name, l.token, deadline-l.ended.At, x.Detail)
}

// checkExtensions is rec/critical, rec/kept and rec/term for all who write the
// record.
func (e *election) checkExtensions(report tell) {
	added := map[string]int{}  // edits, by what they say
	latest := map[string]int{} // edits, by the name of the extension
	next := 0
	for _, v := range e.shown {
		for ; next < len(e.edits) && e.edits[next].At < v.Before; next++ {
			if name, _, ok := e.edits[next].Extension(); ok {
				added[e.edits[next].Detail], latest[name] = next, next
			}
		}
		stand := map[string]string{}
		json.Unmarshal([]byte(v.Detail), &stand) // there may be none
		for name, value := range stand {
			i, ok := added[history.Extension(name, value)]
			if !ok {
				continue
			}
			if x := e.edits[i]; x.rule() == "rec/term" && x.over(v) && !e.emptied(x, v) {
				report(x.rule(), v.At, "the extension %s, which was of the term of token %d, stands in the record of token %d, held by %q",
					x.Detail, x.Token, v.Token, v.Holder)
			}
		}
		for name, i := range latest {
			x := e.edits[i]
			_, value, _ := x.Extension()
			if value == "" || stand[name] == value || x.rule() == "rec/term" && x.over(v) || v.At >= x.stands {
				continue
			}
			report(x.rule(), v.At, "a write dropped the extension %s, which was added %v before", x.Detail, v.Before-x.At)
		}
	}
	for _, x := range e.edits {
		if x.bars() {
			e.checkClaims(x, report)
		}
	}
}

// over reports whether a record that was read shows that the term is over in
// which the edit was made.
func (x edit) over(v history.Event) bool { return v.Token != x.Token || v.Holder == "" }

// checkClaims looks for who won while a critical extension stood that no candidate
// knows.
func (e *election) checkClaims(x edit, report tell) {
	for _, l := range e.leases {
		for _, won := range l.acquired {
			if sent, shows := e.sentAfter(won); shows && sent > x.At+slack && won.At < x.stands {
				report(x.rule(), won.At, "%s acquired token %d while the record had the extension %s, which it does not know", l.candidate.name, l.token, x.Detail)
			}
		}
	}
}

// emptied reports whether the record may show no holder because of a hand and
// not because its term is over, or whether it did when x was added.
func (e *election) emptied(x edit, v history.Event) bool {
	if v.Token != x.Token {
		return false
	}
	for _, y := range e.edits {
		if y.Detail == history.EditedHolder && y.Token == x.Token && y.Before <= v.At {
			return true
		}
	}
	return x.Holder == ""
}

// opened reports whether an edit of p's record let others in, before the span
// of theirs began, and p could not know until a moment.
func (e *election) opened(p *lease, began, until time.Duration) bool {
	for _, x := range e.edits {
		if x.lease == p && x.letsIn() && x.Before < began && e.knownBy(x, until) {
			return true
		}
	}
	return false
}

// openFrom returns from when p's record, which was last renewed at a moment, may
// be taken over by the rules.
func (e *election) openFrom(p *lease, renewed time.Duration) time.Duration {
	from := renewed + e.rules.Wait
	for _, x := range e.edits {
		switch {
		case x.lease != p:
		case x.Detail == history.EditedHolder:
			from = min(from, x.Before)
		case x.Detail == history.EditedTTL:
			from = min(from, x.Before+x.Left/10*11)
		}
	}
	return from
}

// wholeTTL returns the lowest token of a record whose TTL was not changed by
// hand before a moment, or in any record before it.
func (e *election) wholeTTL(at time.Duration) (lowest elector.Token) {
	for _, x := range e.edits {
		if x.Detail == history.EditedTTL && x.Before <= at {
			lowest = max(lowest, x.Token+1)
		}
	}
	return lowest
}
