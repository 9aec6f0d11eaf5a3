package simulation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

var clockCases = []simCase{
	{"pause/inflight", pausedInFlight},
	{"clk/drift", drift},
	{"clk/wall-step", wallStep},
	{"clk/suspend", suspend},
}

// pausedInFlight: paused between t0 and the sending: the expiry is still from
// t0.
func pausedInFlight(t *testing.T) {
	pause := trip{pause: time.Second, out: time.Millisecond, back: time.Millisecond}
	everyKind(t, func(w *world) {
		n := w.node(nil)
		n.link.next("swap", pause, pause)
		l := n.lead()
		w.assert(w.now() > time.Second && n.expiry(l) == 2*time.Millisecond+hold, "the acquisition counts from before the pause")
		w.passUntil(every + 1500*time.Millisecond)
		n.link.cut(true, true)
		w.assert(n.link.left() == 0, "the renewal met its pause too")
		n.endsAt(l, 2*time.Millisecond+every+hold)
	})
}

// drift: rho either way: one valid lease; beyond rho: the fence holds.
func drift(t *testing.T) {
	for _, rates := range [][2]float64{{0.9, 1.1}, {1.1, 0.9}} {
		everyKind(t, func(w *world) {
			nodes := []*node{w.node(nil), w.node(nil)}
			nodes[0].lead()
			for round := range 10 { // each takes over from the other
				holder, challenger := nodes[round%2], nodes[1-round%2]
				holder.machine.drift(rates[0])
				challenger.machine.drift(rates[1])
				bid := challenger.campaign()
				w.pass(time.Duration(5+round) * 700 * time.Millisecond)
				holder.link.cut(true, true)
				bid.won(w, w.now()+time.Minute)
				w.pass(claim)
				holder.link.cut(false, false)
			}
		})
	}
	everyKind(t, func(w *world) {
		w.check.beyond = true
		a, b := w.node(nil), w.node(nil)
		a.machine.drift(0.5)
		b.machine.drift(1.5)
		first := a.lead()
		bid := b.campaign()
		w.pass(7 * time.Second)
		a.link.cut(true, true)
		second := bid.won(w, time.Minute)
		w.assert(valid(first) && valid(second), "clocks beyond rho make two valid leases")
		var fence elector.Fence
		newer, older := fence.Admit(context.Background(), "ledger", second.Token()), fence.Admit(context.Background(), "ledger", first.Token())
		w.assert(newer == nil && errors.Is(older, elector.ErrStale), "the fence admits the new leader and refuses the old one: %v, %v", newer, older)
	})
}

// wallStep: backward: nothing happens; forward: at worst a loss and a new
// election; never an early takeover.
func wallStep(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.machine.step(-time.Hour)
		w.pass(time.Second)
		n.link.cut(true, true)
		n.endsAt(l, 2*time.Millisecond+hold)
	})
	for _, d := range []time.Duration{-time.Hour, time.Hour} {
		everyKind(t, func(w *world) { // the challenger's
			a, b := w.node(nil), w.node(nil)
			l := a.lead()
			bid := b.campaign()
			w.pass(5 * time.Second)
			b.machine.step(d)
			w.pass(30 * time.Second)
			w.assert(valid(l) && !bid.leads(), "a challenger's wall clock takes nothing over")
			a.link.cut(true, true)
			b.machine.step(d)
			bid.won(w, time.Minute)
		})
	}
	everyKind(t, func(w *world) { // the holder's, without a boot clock: it may be a suspend
		a, b := w.node(func(n *node) { n.machine.noBoot = true }), w.node(nil)
		l := a.lead()
		bid := b.campaign()
		w.pass(5 * time.Second)
		a.machine.step(time.Hour)
		w.assert(!valid(l), "a wall clock that jumped forward may mean a suspend")
		bid.won(w, time.Minute)
	})
}

// suspend: the boot-time clock goes on while the monotonic one stands still,
// also with a wall clock stepped back: Check fails.
func suspend(t *testing.T) {
	none := func(*node) {}
	for how, c := range map[string]struct{ setup, tamper func(n *node) }{
		"all clocks":            {none, none},
		"no boot-time clock":    {func(n *node) { n.machine.noBoot = true }, none},
		"wall clock set back":   {none, func(n *node) { n.machine.step(-time.Hour) }},
		"wall clock set before": {none, func(n *node) { n.machine.step(-21 * time.Second) }},
	} {
		everyKind(t, func(w *world) {
			a, b := w.node(c.setup), w.node(nil)
			l := a.lead()
			bid := b.campaign()
			w.pass(4 * time.Second)
			before := a.machine.moment()
			a.machine.suspend(20 * time.Second)
			c.tamper(a)
			bid.won(w, time.Minute) // while the old holder sleeps
			w.pass(20 * time.Second)
			after := a.machine.moment()
			w.assert(after.boot-before.boot >= 20*time.Second+(after.mono-before.mono)-1, "the monotonic clock stood still (%s)", how)
			w.assert(!valid(l), "Check fails after a suspend (%s)", how)
		})
	}
}
