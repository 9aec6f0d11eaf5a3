package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A request is a step of the model.
type request struct {
	kind   requestKind
	holder string
	token  elector.Token
}

type requestKind int

const (
	acquire     requestKind = iota // the record becomes holder's, with a token above all before
	disbelieved                    // the same, but holder does not lead by it: so the token may be a lower one
	renew                          // the record is holder's
	release                        // the record becomes vacant if it is holder's
	observe                        // the record says so
	create                         // the record becomes holder's if there is none
	restore                        // the record is changed behind everybody's back
	remove
	spoil
	come   // a write with the token comes to the resource, which may remember it
	accept // the resource takes a write with the token
	reject
)

// A record is the state of the model of an election: what the store shows and
// the highest token that an acquisition had.
type record struct {
	holder  string // empty when vacant
	token   elector.Token
	garbage bool
	missing bool
	highest elector.Token
}

// recordModel is a lease in the store. It knows no time: that is checked
// directly.
var recordModel = porcupine.Model{
	Init: func() any { return record{missing: true} },
	Step: func(state, input, _ any) (bool, any) {
		s, r := state.(record), input.(request)
		ours := !s.garbage && s.holder == r.holder && s.token == r.token
		switch r.kind {
		case acquire:
			return r.token > s.highest && !s.garbage, record{holder: r.holder, token: r.token, highest: r.token}
		case disbelieved:
			return !s.garbage && !ours, record{holder: r.holder, token: r.token, highest: max(s.highest, r.token)}
		case renew, observe:
			return ours, s
		case release:
			if ours {
				s.holder = ""
			}
			return true, s
		case create:
			if s.missing {
				s = record{holder: r.holder, token: r.token, highest: max(s.highest, r.token)}
			}
			return true, s
		case restore:
			return true, record{holder: r.holder, token: r.token, highest: s.highest}
		case remove:
			return true, record{missing: true, highest: s.highest}
		case spoil:
			return true, record{garbage: true, highest: s.highest}
		}
		return false, s
	},
}

// fenceModel is the resource: its state is the highest token that it has seen.
var fenceModel = porcupine.Model{
	Init: func() any { return elector.Token(0) },
	Step: func(state, input, _ any) (bool, any) {
		highest, r := state.(elector.Token), input.(request)
		switch r.kind {
		case come:
			return true, max(highest, r.token)
		case accept:
			return r.token >= highest, r.token
		}
		return r.token < highest, highest
	},
}

// orderTimeout bounds the search for an order in the history of one election.
const orderTimeout = 10 * time.Second

// checkOrder looks for an order of all requests, each at some time between when
// it was sent and when it was answered, that explains what they returned.
func (e *election) checkOrder(timeout time.Duration) (found []Violation) {
	type part struct {
		what  string
		model porcupine.Model
		ops   []porcupine.Operation
	}
	var parts []part
	if !e.isPartition() { // whose renewals are not requests for its own record
		parts = append(parts, part{"the requests to the store", recordModel, e.thin(e.recordRequests())})
	}
	parts = append(parts, part{"the writes to the resource", fenceModel, e.writes()})
	for _, part := range parts {
		v := Violation{Election: e.name, Rule: Linearizable, Text: "no order of " + part.what + ", each between when it was sent and when it was answered, explains what they returned"}
		switch porcupine.CheckOperationsTimeout(part.model, part.ops, timeout) {
		case porcupine.Ok:
			continue
		case porcupine.Unknown:
			v.Rule, v.Text = Undecided, "it was not found out in time whether an order of "+part.what+" explains what they returned"
		}
		found = append(found, v)
	}
	return found
}

func operation(r request, from, until time.Duration) porcupine.Operation {
	return porcupine.Operation{Input: r, Call: int64(from), Return: int64(max(from, until))}
}

// recordRequests returns the requests to the store, in no order.
func (e *election) recordRequests() (ops []porcupine.Operation) {
	type state struct {
		holder string
		token  elector.Token
	}
	known := map[state]bool{}
	for _, c := range e.candidates {
		began := c.began()
		leases := slices.Clone(c.leases)
		slices.SortStableFunc(leases, func(a, b *lease) int { return cmp.Compare(a.first.At, b.first.At) })
		for _, l := range leases {
			known[state{c.name, l.token}] = true
			// A lease may have been renewed before its first report.
			won := request{acquire, c.name, l.token}
			ops = append(ops, operation(won, began, l.first.At))
			ops = append(ops, e.lateCreations(c.name, won, began, l.first.At)...)
			ops = append(ops, e.renewals(l, began)...)
			if l.ended != nil {
				ops = append(ops, e.releases(l)...)
				began = max(began, l.ended.At)
			}
		}
		for _, v := range c.events {
			switch v.Kind {
			case history.Observed:
				ops = append(ops, operation(request{observe, v.Holder, v.Token}, v.Before, v.At))
			case history.Discarded:
				known[state{c.name, v.Token}] = true
				won := request{disbelieved, c.name, v.Token}
				ops = append(ops, operation(won, c.began(), v.At))
				ops = append(ops, e.lateCreations(c.name, won, c.began(), v.At)...)
				if c.toldToEnd() < forever || e.tookBack(v) {
					ops = append(ops, operation(request{release, c.name, v.Token}, c.began(), forever))
				}
			}
		}
	}
	for _, x := range e.edits {
		if x.Detail == history.EditedHolder {
			ops = append(ops, operation(request{restore, x.Holder, x.Token}, x.Before, x.At))
		}
	}
	for _, x := range e.tampering {
		r := request{kind: remove}
		switch x.Kind {
		case history.Restored:
			r = request{restore, x.Holder, x.Token}
		case history.Spoiled:
			r = request{kind: spoil}
		}
		// The campaign may have had to try again.
		op := operation(r, x.Before, x.At)
		ops = append(ops, op, op)
	}
	// A lease that was observed, and whose candidate reported none, was acquired
	// some time before by a candidate that died or got no answer. It may not have
	// believed it if the record had gone back.
	for _, v := range e.events {
		s := state{v.Holder, v.Token}
		if v.Kind != history.Observed || v.Holder == "" || known[s] {
			continue
		}
		known[s] = true
		began, kind := e.candidates[v.Holder].began(), acquire
		if e.wentBack(began, v.At) {
			kind = disbelieved
		}
		won := request{kind, v.Holder, v.Token}
		ops = append(ops, operation(won, began, v.At))
		ops = append(ops, e.lateCreations(v.Holder, won, began, forever)...)
		if c := e.candidates[v.Holder]; c != nil && c.toldToEnd() < forever { // and may have taken it back
			ops = append(ops, operation(request{release, v.Holder, v.Token}, began, forever))
		}
	}
	return append(ops, e.retracted()...)
}

// tookBack reports whether a candidate reports the release of what it acquired and did
// not believe, because its campaign had ended meanwhile.
func (e *election) tookBack(d history.Event) bool {
	return slices.ContainsFunc(e.events, func(v history.Event) bool {
		return v.Kind == history.Released && v.Candidate == d.Candidate && v.Token == d.Token
	})
}

// retracted returns acquisitions of which only the vacancy was seen: a campaign
// that is told to end takes back what it has under way.
func (e *election) retracted() (ops []porcupine.Operation) {
	known := map[elector.Token]bool{0: true}
	for _, l := range e.leases {
		known[l.token] = true
	}
	for _, x := range slices.Concat(e.tampering, e.swaps) {
		known[x.Token] = true
	}
	for _, v := range e.events {
		if v.Kind == history.Observed && v.Holder != "" { // one that waits may have seen more
			known[v.Token] = true
		}
	}
	toldToEnd := forever
	for _, c := range e.candidates {
		toldToEnd = min(toldToEnd, c.toldToEnd())
	}
	for _, v := range e.events {
		if v.Kind == history.Observed && !known[v.Token] && toldToEnd < v.At {
			known[v.Token] = true
			ops = append(ops, operation(request{acquire, "", v.Token}, 0, v.At))
		}
	}
	return ops
}

// began returns from when a candidate may have sent requests.
func (c *candidate) began() time.Duration {
	if c == nil {
		return 0
	}
	for _, v := range c.done {
		if v.Kind == history.Started {
			return v.Before
		}
	}
	return 0
}

// renewals returns the renewals of a lease: sent when its time began at the
// earliest, and one after the other.
func (e *election) renewals(l *lease, began time.Duration) (ops []porcupine.Operation) {
	last := began
	for _, look := range l.looks {
		if look.Kind != history.Renewed {
			continue
		}
		from := last
		if sent, shows := e.sentAfter(look); shows {
			from = max(from, sent)
		}
		ops = append(ops, operation(request{renew, l.candidate.name, l.token}, from, look.At))
		last = look.Before
	}
	return ops
}

// releases returns the release of a lease. One without a reported outcome, or
// that may have found what its candidate did not write, or an earlier state, and
// left it alone, may be done at any time, also never: after all reported requests.
func (e *election) releases(l *lease) []porcupine.Operation {
	r := request{release, l.candidate.name, l.token}
	left := l.released != nil && e.wentBack(l.first.Before-e.rules.Hold, l.released.At) ||
		slices.ContainsFunc(e.edits, func(x edit) bool { return x.lease == l && x.costs() })
	switch {
	case l.released != nil && l.released.Detail == "" && !left:
		return []porcupine.Operation{operation(r, l.ended.At, l.released.At)}
	case l.resigned():
		return []porcupine.Operation{operation(r, l.ended.At, forever)}
	}
	return nil
}

// writes returns what the resource did.
func (e *election) writes() (ops []porcupine.Operation) {
	for _, v := range e.events {
		switch v.Kind {
		case history.Accepted:
			ops = append(ops, operation(request{accept, v.Candidate, v.Token}, v.Before, v.At))
		case history.Rejected:
			// It may have been the highest for a moment, and waited for older ones.
			ops = append(ops, operation(request{come, v.Candidate, v.Token}, v.Before, v.At), operation(request{reject, v.Candidate, v.Token}, v.Before, v.At))
		}
	}
	return thinned(ops)
}

// thin leaves out requests that show nothing new, so that a long history is
// checked quickly. A record that only candidates write never
// returns to a state that it has left: of all that show one state, those count
// that may have been the first or the last.
func (e *election) thin(ops []porcupine.Operation) (kept []porcupine.Operation) {
	// Each part is between two changes behind their backs.
	parts := make([][]porcupine.Operation, len(e.tampering)+1)
	for _, op := range ops {
		kind := op.Input.(request).kind
		i, whole := 0, kind == renew || kind == observe
		for _, x := range e.tampering {
			switch {
			case op.Call > int64(x.At):
				i++
			case op.Return >= int64(x.Before):
				whole = false
			}
		}
		if whole {
			parts[i] = append(parts[i], op)
		} else {
			kept = append(kept, op)
		}
	}
	for _, part := range parts {
		kept = append(kept, thinned(part)...)
	}
	slices.SortStableFunc(kept, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return kept
}

// thinned returns those of each kind of request that no other precedes, or that
// no other follows. (Requests of a renewal and of a read that show the same
// state are of one kind.)
func thinned(ops []porcupine.Operation) (kept []porcupine.Operation) {
	type bounds struct{ answered, sent int64 }
	same := func(op porcupine.Operation) request {
		r := op.Input.(request)
		if r.kind == renew {
			r.kind = observe
		}
		if r.kind == come || r.kind == accept || r.kind == reject {
			r.holder = ""
		}
		return r
	}
	all := map[request]bounds{}
	for _, op := range ops {
		b, ok := all[same(op)]
		if !ok {
			b = bounds{op.Return, op.Call}
		}
		all[same(op)] = bounds{min(b.answered, op.Return), max(b.sent, op.Call)}
	}
	for _, op := range ops {
		if b := all[same(op)]; op.Call <= b.answered || op.Return >= b.sent {
			kept = append(kept, op)
		}
	}
	return kept
}
