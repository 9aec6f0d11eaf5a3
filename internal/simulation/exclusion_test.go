package simulation

import (
	"testing"
	"time"
)

var exclusionCases = []simCase{
	{"mx/two-valid", twoValid},
	{"mx/takeover-bound", takeoverBound},
	{"mx/vanished", vanished},
	{"mx/rollback", rolledBack},
}

// twoValid: under drift within rho and any latency, never two valid leases.
func twoValid(t *testing.T) {
	for _, rates := range [][2]float64{{0.9, 1.1}, {1.1, 0.9}, {1, 1}, {0.9, 0.9}, {1.1, 1.1}} {
		everyKind(t, func(w *world) {
			a, b := w.node(nil), w.node(nil)
			a.machine.drift(rates[0])
			b.machine.drift(rates[1])
			a.lead()
			bid := b.campaign()
			w.pass(7 * time.Second)
			a.link.cut(true, true)
			bid.won(w, time.Minute) // the checker looks at both leases
		})
	}
	// A read that is sent early and served late shows a renewal that was sent
	// after it: the challenger's clock starts with the answer.
	simulate(t, *seedFlag, polled, func(w *world) {
		a, b := w.node(nil), w.node(nil)
		a.machine.drift(0.9)
		b.machine.drift(1.1)
		l := a.lead()
		w.passUntil(2150 * time.Millisecond)
		b.link.next("load", trip{out: 1200 * time.Millisecond, back: time.Millisecond})
		bid := b.campaign()
		w.passUntil(3400 * time.Millisecond)
		a.link.cut(true, true)
		w.assert(a.link.requests("swap") == 2 && l.Remaining() > 8*time.Second, "the holder renewed while the read was on its way")
		bid.won(w, time.Minute)
	})
}

// takeoverBound: a crashed holder is replaced within tau, and not before its
// own H.
func takeoverBound(t *testing.T) {
	for seed := range uint64(20) {
		for _, kind := range kinds {
			simulate(t, *seedFlag+seed, kind, func(w *world) {
				d := newDice(w.seed, 100)
				a, b, c := w.node(nil), w.node(nil), w.node(nil)
				for _, n := range w.nodes {
					n.machine.drift(0.9 + 0.2*d.float())
				}
				l := a.lead()
				bids := []*bid{b.campaign(), c.campaign()}
				w.pass(d.between(10*time.Second, 30*time.Second))
				w.assert(valid(l), "a holder without faults keeps its lease")
				a.machine.pause(time.Hour)
				crash := w.now()
				const tau = claim + every + every/2 + 250*time.Millisecond
				bound := crash + time.Duration(float64(tau)/0.9)
				for !bids[0].leads() && !bids[1].leads() {
					w.assert(w.now() < bound, "a crashed holder is replaced within tau = %v, at %v", tau, bound)
					w.pass(10 * time.Millisecond)
				}
			})
		}
	}
}

// vanished: the record is deleted while it is held; no node that had seen it
// leads before C.
func vanished(t *testing.T) {
	for _, connected := range []bool{true, false} {
		everyKind(t, func(w *world) {
			a, b, c := w.node(nil), w.node(nil), w.node(nil)
			l := a.lead()
			bids := []*bid{b.campaign(), c.campaign()}
			w.pass(7 * time.Second)
			a.link.cut(!connected, !connected)
			lossAndSuccession(w, bids, func() { w.check.spoil(nil) })
			w.assert(!valid(l), "a holder whose record vanished has lost")
		})
	}
	simulate(t, *seedFlag, pushesAll, vanishedBetweenTries)
	simulate(t, *seedFlag, pushesSome, vanishedBetweenTries)
	for _, kind := range []watchKind{pushesAll, pushesSome} {
		for _, heard := range []bool{true, false} {
			simulate(t, *seedFlag, kind, func(w *world) { vanishedUnderWay(w, heard) })
		}
	}
}

// vanishedBetweenTries: an acquisition whose first write got lost sees a winner,
// and that winner's record vanish, before its next write. That the record again
// does not exist, as when it began, allows nothing.
func vanishedBetweenTries(w *world) {
	a, b, c := w.node(nil), w.node(nil), w.node(nil)
	a.lead()
	bid := b.campaign()
	w.pass(4 * time.Second)
	a.machine.pause(time.Hour)
	w.check.spoil(nil)
	b.link.next("swap", trip{lost: true, breaks: 100 * time.Millisecond})
	for b.link.left() > 0 {
		w.assert(w.now() < time.Minute, "the waiter tries to take over")
		w.pass(10 * time.Millisecond)
	}
	b.link.next("load", trip{lost: true})
	l := c.lead()
	w.pass(500 * time.Millisecond)
	w.check.spoil(nil)
	c.link.cut(true, true)
	for valid(l) {
		w.assert(!bid.leads(), "who has seen a winner does not go on with an acquisition begun before")
		w.pass(10 * time.Millisecond)
	}
	bid.won(w, 2*time.Minute)
}

// vanishedUnderWay: an acquisition sees a winner, and that winner's record
// vanish, while its own write is on the way. That the write is applied after
// that, as an answer or a read-back shows, makes no leader while the winner may
// believe that it leads.
func vanishedUnderWay(w *world, heard bool) {
	a, b, c := w.node(nil), w.node(nil), w.node(nil)
	a.lead()
	bid := b.campaign()
	w.pass(4 * time.Second)
	a.machine.pause(time.Hour)
	w.check.spoil(nil)
	b.link.next("swap", trip{out: 1200 * time.Millisecond, back: time.Millisecond, mute: !heard})
	for b.link.left() > 0 {
		w.assert(w.now() < time.Minute, "the waiter tries to take over")
		w.pass(10 * time.Millisecond)
	}
	l := c.lead()
	w.pass(500 * time.Millisecond)
	w.assert(!bid.leads() && w.record().Holder == c.name, "another node wins while the waiter's write is on its way")
	w.check.spoil(nil)
	c.link.cut(true, true)
	w.pass(time.Second)
	w.assert(w.record().Holder == b.name && valid(l), "the waiter's write is applied while the winner leads")
	for valid(l) {
		w.assert(!bid.leads(), "who has seen a winner does not believe an acquisition sent before")
		w.pass(10 * time.Millisecond)
	}
	bid.won(w, 2*time.Minute)
}

// rolledBack: the record returns to an older state; the same.
func rolledBack(t *testing.T) {
	for _, connected := range []bool{true, false} {
		everyKind(t, func(w *world) {
			a, b, c := w.node(nil), w.node(nil), w.node(nil)
			a.lead()
			if err := a.elector.Resign(w.Context()); err != nil {
				t.Fatal(err)
			}
			vacant := w.store.Get(election)
			l := b.lead()
			bids := []*bid{a.campaign(), c.campaign()}
			w.pass(7 * time.Second)
			b.link.cut(!connected, !connected)
			lossAndSuccession(w, bids, func() { w.check.spoil(vacant) })
			w.assert(!valid(l), "a holder whose record went back to another node's has lost")
		})
	}
	// Back to an older state of the same lease, of which its holder cannot
	// hear.
	everyKind(t, func(w *world) {
		a, b := w.node(nil), w.node(nil)
		a.lead()
		older := w.store.Get(election)
		bids := []*bid{b.campaign()}
		w.pass(7 * time.Second)
		a.link.cut(true, true)
		lossAndSuccession(w, bids, func() { w.check.spoil(older) })
	})
}

// lossAndSuccession lets the store lose the record, and checks that no node
// leads before C and one does soon after.
func lossAndSuccession(w *world, bids []*bid, lose func()) {
	w.Helper()
	won := func() bool {
		for _, b := range bids {
			if b.leads() {
				return true
			}
		}
		return false
	}
	w.assert(!won(), "no node leads besides the holder")
	at := w.now()
	lose()
	for w.now() < at+claim {
		w.assert(!won(), "no node that had seen the record leads before C after it was lost")
		w.pass(10 * time.Millisecond)
	}
	for !won() {
		w.assert(w.now() < at+2*claim, "a node leads soon after C")
		w.pass(10 * time.Millisecond)
	}
}
