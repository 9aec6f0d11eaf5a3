package simulation

import (
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

var recordCases = []simCase{
	{"rec/edited", recordEdited},
	{"rec/critical", recordCritical},
	{"rec/request", recordRequest},
}

// edits are what a user can do to a record by hand that its holder must take
// for a loss.
var edits = map[string]func(r *backends.Record) bool{
	"holder emptied":   func(r *backends.Record) bool { r.Holder = ""; return true },
	"holder renamed":   func(r *backends.Record) bool { r.Holder = "by hand"; return true },
	"TTL lowered":      func(r *backends.Record) bool { r.TTL = every + time.Second; return true },
	"TTL raised":       func(r *backends.Record) bool { r.TTL = 2 * ttl; return true },
	"interval changed": func(r *backends.Record) bool { r.RenewEvery = every / 2; return true },
	"value changed":    func(r *backends.Record) bool { r.Value = "by hand"; return true },
	"token raised":     func(r *backends.Record) bool { r.Token++; return true },
}

// recordEdited: what the holder has not written so is a loss, by its next
// renewal or by its own H, and never adopted; a fresh candidate then leads
// alone.
func recordEdited(t *testing.T) {
	for what, change := range edits {
		everyKind(t, func(w *world) {
			a := w.node(nil)
			first := a.lead()
			w.pass(every + time.Second)
			w.assert(w.check.edit(change), "the record is edited (%s)", what)
			w.assert(valid(first), "the holder has not noticed yet (%s)", what)
			w.passUntil(2*every + 20*time.Millisecond)
			over := first.Check()
			w.assert(errors.Is(over, elector.ErrLost), "the next renewal finds that the record was edited (%s): %v", what, over)
			second := w.node(nil).campaign().won(w, time.Minute)
			w.pass(time.Minute)
			w.assert(valid(second) && !valid(first), "a fresh candidate leads alone (%s)", what)
		})
		everyKind(t, func(w *world) {
			a := w.node(nil)
			l := a.lead()
			w.pass(every + time.Second)
			w.assert(w.check.edit(change), "the record is edited (%s)", what)
			a.link.cut(true, true)
			a.endsAt(l, 2*time.Millisecond+every+hold)
		})
	}
	// It is edited before its holder knows that it has won.
	everyKind(t, func(w *world) {
		a := w.node(nil)
		a.link.next("swap", unheard)
		bid := a.campaign()
		w.pass(time.Second)
		w.assert(w.check.edit(edits["holder emptied"]), "the acquisition is applied")
		second := w.node(nil).campaign().won(w, time.Minute)
		w.pass(every)
		w.assert(!bid.leads() && valid(second), "no node believes an acquisition whose record was edited")
	})
}

// recordCritical: an unknown critical extension keeps every node away
// from the record, held or vacant: it is not claimed, not written over, and not
// called lapsed; and a holder that meets one has lost.
func recordCritical(t *testing.T) {
	for _, vacant := range []bool{false, true} {
		everyKind(t, func(w *world) {
			a, b, c := w.node(nil), w.node(nil), w.node(nil)
			l := a.lead()
			if vacant {
				if err := l.Release(w.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w.assert(w.check.edit(newDice(1).extend("c_")), "a critical extension is added")
			untouched := w.record()
			bid := b.campaign()
			w.pass(every + time.Second)
			w.assert(!valid(l), "a holder that meets a critical extension has lost")
			for range 30 {
				w.pass(time.Second)
				none, err := c.elector.TryCampaign(w.Context())
				w.assert(none == nil && errors.Is(err, elector.ErrHeld), "a record with a critical extension is held: %v", err)
				leader, err := c.elector.Leader(w.Context())
				w.assert(err == nil && !leader.Lapsed, "and it has not lapsed: %v, %v", leader, err)
			}
			w.assert(!bid.leads() && w.record() == untouched, "no node has touched it")
			w.assert(w.check.edit(strip("c_")), "the critical extension is removed")
			bid.won(w, w.now()+claim+2*every)
		})
	}
	everyKind(t, func(w *world) {
		l := w.node(nil).lead()
		w.assert(w.check.edit(newDice(1).extend("c_")), "a critical extension is added")
		untouched := w.record()
		l.Release(w.Context())
		w.assert(w.record() == untouched, "a release leaves it alone")
	})
}

// recordRequest: a request costs the holder one conflict, one read and one
// repeat, and nothing else; it neither prolongs a lease nor keeps a dead leader.
func recordRequest(t *testing.T) {
	d := newDice(2)
	everyKind(t, func(w *world) {
		a, b := w.node(nil), w.node(nil)
		l := a.lead()
		w.passUntil(every + time.Second)
		loads, swaps := a.link.requests("load"), a.link.requests("swap")
		w.assert(w.check.edit(d.request), "the holder is asked to resign")
		w.passUntil(2*every + 20*time.Millisecond)
		w.assert(a.link.requests("load") == loads+1 && a.link.requests("swap") == swaps+2, "a request costs a conflict, a read and a repeat")
		w.assert(l.Remaining() > hold-50*time.Millisecond, "the renewal is repeated at once")
		bid := b.campaign()
		for range 100 {
			w.pass(time.Second)
			w.check.edit(d.request)
			w.assert(valid(l) && !bid.leads(), "a hundred requests cost no lease")
		}
	})
	everyKind(t, func(w *world) {
		a := w.node(nil)
		l := a.lead()
		w.passUntil(every + time.Second)
		a.link.cut(false, true) // what it writes is applied, and it hears nothing of it
		for range 7 {
			w.pass(time.Second)
			w.check.edit(d.request)
		}
		a.endsAt(l, 2*time.Millisecond+every+hold)
	})
	everyKind(t, func(w *world) {
		a, b := w.node(nil), w.node(nil)
		a.lead()
		bid := b.campaign()
		w.pass(7 * time.Second)
		a.machine.pause(time.Hour)
		bound := w.now() + claim + every + every/2 + 250*time.Millisecond
		for !bid.leads() {
			w.assert(w.now() < bound, "requests do not keep a dead leader")
			w.pass(time.Second / 2)
			w.check.edit(d.request)
		}
	})
}
