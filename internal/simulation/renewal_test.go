package simulation

import (
	"testing"
	"time"
)

var renewalCases = []simCase{
	{"ren/resurrect", resurrect},
	{"ren/slow-then-cut", slowThenCut},
	{"ren/stall", stall},
}

// slowRenewals makes requests that may take 4 s, so that one can outlast a
// lease.
func slowRenewals(n *node) {
	n.options.RenewEvery, n.options.RequestTimeout = 4*time.Second, 4*time.Second
}

// resurrect: a lapsed lease never becomes valid again under the old token,
// whether or not anybody looked while it had lapsed.
func resurrect(t *testing.T) {
	for _, looked := range []bool{true, false} {
		everyKind(t, func(w *world) {
			n := w.node(slowRenewals)
			l := n.lead()
			n.link.next("swap", trip{out: 6 * time.Second, back: time.Millisecond})
			w.passUntil(4100 * time.Millisecond)
			w.assert(n.link.left() == 0, "the renewal is on its way")
			n.machine.holdTimers(time.Hour)
			w.passUntil(9500 * time.Millisecond)
			if looked {
				w.assert(!valid(l), "the lease has lapsed")
			}
			w.passUntil(10500 * time.Millisecond) // the renewal would reach to 13 s
			w.assert(n.link.inFlight() == 0, "the renewal was answered")
			w.assert(!valid(l), "a lapsed lease stays lapsed (looked at: %v)", looked)
		})
	}
}

// slowThenCut: one renewal answered only just in time, then the network is
// cut: one valid lease, and no request that outlasts it.
func slowThenCut(t *testing.T) {
	everyKind(t, func(w *world) {
		a, b := w.node(slowRenewals), w.node(nil)
		b.machine.drift(1.1)
		l := a.lead()
		bid := b.campaign()
		a.link.next("swap", trip{out: time.Millisecond, back: 3900 * time.Millisecond})
		w.passUntil(7950 * time.Millisecond)
		w.assert(a.link.left() == 0 && l.Remaining() > 5*time.Second, "the renewal was answered just in time")
		a.link.cut(true, true)
		w.passUntil(a.expiry(l) - 1)
		w.assert(a.link.inFlight() > 0, "a request hangs at the end of the lease")
		w.pass(5 * time.Millisecond)
		w.assert(!valid(l), "the lease counts from before the slow renewal was sent")
		w.assert(a.link.inFlight() == 0, "every request is given up with the lease as it stood when it was sent")
		bid.won(w, time.Minute)
	})
}

// stall: with StallTimeout a worker that stops calling Check loses the lease
// by StallTimeout + H; one that keeps calling does not.
func stall(t *testing.T) {
	const patience = 5 * time.Second
	everyKind(t, func(w *world) {
		n := w.node(func(n *node) { n.options.StallTimeout = patience })
		l := n.lead()
		for w.now() < 40*time.Second {
			w.assert(valid(l), "a worker that calls Check keeps its lease")
			w.pass(time.Second)
		}
		w.pass(patience + hold)
		w.assert(l.Remaining() == 0 && l.Context().Err() != nil, "a worker that stopped calling Check has lost its lease")
	})
}
