package simulation

import (
	"testing"
	"time"

	"github.com/elector-go/elector"
)

var expiryCases = []simCase{
	{"exp/from-send", expiryFromSend},
	{"exp/late-ack", expiryLateAck},
	{"exp/exact", expiryExact},
	{"exp/no-timer", expiryWithoutTimer},
}

// expiry is when a lease must end, if nothing renews it and the node's clock is
// right: t0 + H, by what the network knows of t0.
func (n *node) expiry(l *elector.Lease) time.Duration {
	t0, _ := n.witness.since(n.witness.won(uint64(l.Token())))
	return n.w.now() + t0.boot + holds(n) - n.machine.moment().boot
}

// endsAt checks that the lease ends at an instant and not before.
func (n *node) endsAt(l *elector.Lease, at time.Duration) {
	w := n.w
	w.Helper()
	w.assert(w.now() < at, "the lease's end lies ahead")
	w.passUntil(at - 1)
	w.assert(l.Remaining() == 1 && valid(l) && l.Context().Err() == nil, "the lease is valid until t0 + H, %v", at)
	w.passUntil(at)
	w.assert(!valid(l) && l.Remaining() == 0, "at t0 + H, %v, Check fails", at)
	w.pass(time.Millisecond)
	w.assert(l.Context().Err() != nil, "the context ends with the lease, at %v", at)
}

// expiryFromSend: a response delayed by d leaves the expiry at t0 + H.
func expiryFromSend(t *testing.T) {
	for _, d := range []time.Duration{0, 500 * time.Millisecond, 1490 * time.Millisecond} {
		everyKind(t, func(w *world) { // the acquisition
			n := w.node(nil)
			n.link.next("swap", trip{out: time.Millisecond, back: d})
			l := n.lead()
			n.link.cut(true, true)
			n.endsAt(l, 2*time.Millisecond+hold)
		})
		everyKind(t, func(w *world) { // a renewal
			n := w.node(nil)
			l := n.lead()
			n.link.next("swap", trip{out: time.Millisecond, back: d})
			w.passUntil(2*time.Millisecond + every + d + 2*time.Millisecond)
			n.link.cut(true, true)
			n.endsAt(l, 2*time.Millisecond+every+hold)
		})
	}
}

// expiryLateAck: a success that arrives after H never makes a leader.
func expiryLateAck(t *testing.T) {
	late := map[string]func(n *node){
		"suspended before the request left": func(n *node) {
			n.link.next("swap", trip{suspend: 20 * time.Second, out: time.Millisecond, back: time.Millisecond})
		},
		"paused while the answer was on its way": func(n *node) {
			n.link.next("swap", trip{out: time.Second, back: time.Millisecond})
			go func() {
				for n.link.left() > 0 {
					time.Sleep(time.Millisecond)
				}
				n.machine.pause(20 * time.Second)
			}()
		},
		"timers do not fire": func(n *node) {
			n.link.next("swap", trip{out: 10 * time.Second, back: time.Millisecond})
			n.machine.holdTimers(time.Minute)
		},
	}
	for how, delay := range late {
		everyKind(t, func(w *world) {
			n := w.node(nil)
			delay(n)
			l, err := n.elector.TryCampaign(w.Context())
			w.assert(w.now() > hold, "the answer is late: %s", how)
			w.assert(l == nil && err != nil, "an acquisition acknowledged after H makes no leader: %s", how)
		})
	}
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.link.next("swap", trip{suspend: 20 * time.Second, out: time.Millisecond, back: time.Millisecond})
		w.pass(25 * time.Second)
		w.assert(n.link.left() == 0, "the renewal met its fault")
		w.assert(!valid(l), "a renewal acknowledged after H makes no leader")
	})
}

// expiryExact: at exactly H, Check fails.
func expiryExact(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.link.cut(true, true)
		n.endsAt(l, n.expiry(l))
	})
}

// expiryWithoutTimer: with every timer held back, Check still fails after H.
func expiryWithoutTimer(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.machine.holdTimers(time.Hour)
		w.passUntil(n.expiry(l))
		w.assert(l.Context().Err() == nil, "no timer has fired")
		w.assert(!valid(l), "Check fails after H without a timer")
	})
}
