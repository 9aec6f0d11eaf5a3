package simulation

import (
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

var ambiguityCases = []simCase{
	{"amb/acquire", ambiguousAcquire},
	{"amb/renew", ambiguousRenew},
	{"amb/conflict-is-mine", conflictIsMine},
	{"amb/two-unresolved", twoUnresolved},
	{"amb/release", ambiguousRelease},
	{"amb/delayed-write", delayedWrite},
	{"amb/late-creation-twice", lateCreationTwice},
}

// Trips of scripted requests.
var (
	passes   = trip{out: time.Millisecond, back: time.Millisecond}
	unheard  = trip{out: time.Millisecond, mute: true}                                // applied, never answered
	unsent   = trip{lost: true, breaks: time.Millisecond}                             // refused on the way
	repeated = trip{out: time.Millisecond, again: 5 * time.Millisecond, second: true} // by a proxy
)

// ambiguousAcquire: the acknowledgement is lost: leader only after a read-back
// proves it, timed from that attempt's t0.
func ambiguousAcquire(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		n.link.next("load", passes, trip{lost: true}, passes)
		n.link.next("swap", unheard, passes, trip{lost: true})
		bid := n.campaign()
		w.passUntil(time.Second)
		w.assert(w.record().Holder == n.name && !bid.leads(), "the write is applied, and no node knows")
		l := bid.won(w, 8*time.Second)
		w.assert(w.now() > 3*time.Second, "a read-back that got lost proves nothing")
		n.link.cut(true, true)
		n.endsAt(l, 2*time.Millisecond+hold)
	})
}

// ambiguousRenew: the acknowledgement is lost: the expiry is unchanged until a
// read-back, and there is no false loss before H.
func ambiguousRenew(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.link.next("swap", unheard)
		w.passUntil(30 * time.Second)
		w.assert(n.link.left() == 0 && valid(l), "a lost acknowledgement loses no lease")
	})
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.link.cut(false, true) // writes are applied, and nothing is heard of it
		n.endsAt(l, 2*time.Millisecond+hold)
		w.assert(w.record().Attempt.Sequence > 1, "a renewal was applied")
	})
}

// conflictIsMine: the store says conflict because our own first try was
// applied: not a loss.
func conflictIsMine(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		n.link.next("swap", repeated, repeated)
		l := n.lead()
		w.passUntil(every + time.Second)
		w.assert(n.link.left() == 0, "both writes were repeated")
		w.assert(w.record().Attempt.Sequence > 1 && valid(l), "a conflict with our own write is no loss")
		n.link.cut(true, true)
		n.endsAt(l, 2*time.Millisecond+every+hold)
	})
}

// twoUnresolved: two attempts without an answer, the earlier one applied:
// recognised, and timed from its own t0.
func twoUnresolved(t *testing.T) {
	everyKind(t, func(w *world) {
		n := w.node(nil)
		l := n.lead()
		n.link.next("swap", unheard, unsent)
		n.link.next("load", unsent, passes)
		for n.link.left() > 0 {
			w.assert(w.now() < hold, "the lease is tried to be renewed twice")
			w.pass(time.Millisecond)
		}
		w.pass(2 * time.Millisecond)
		n.link.cut(true, true)
		w.assert(valid(l), "the earlier write is recognised")
		n.endsAt(l, 2*time.Millisecond+every+hold)
	})
	everyKind(t, func(w *world) {
		n := w.node(nil)
		n.link.next("swap", unheard, repeated)
		n.link.next("load", passes, unsent, passes)
		l := n.lead()
		w.assert(n.link.left() == 0 && w.record().Attempt.Sequence == 1, "the first write is the one applied")
		n.link.cut(true, true)
		n.endsAt(l, 2*time.Millisecond+hold)
	})
}

// ambiguousRelease: the acknowledgement is lost: not leader; the retry never
// hits a successor.
func ambiguousRelease(t *testing.T) {
	releases := map[string][]trip{
		"unheard":  {unheard},
		"slow":     {{out: time.Millisecond, back: 1400 * time.Millisecond}},
		"late":     {{out: 5 * time.Second, breaks: time.Millisecond}},
		"repeated": {{out: time.Millisecond, mute: true, again: 2 * time.Second}},
	}
	for how, trips := range releases {
		everyKind(t, func(w *world) {
			a, b := w.node(nil), w.node(nil)
			first := a.lead()
			bid := b.campaign()
			w.pass(4 * time.Second)
			a.link.next("swap", trips...)
			go first.Release(w.Context())
			w.pass(1)
			w.assert(!valid(first), "who resigns does not lead, whatever becomes of the release (%s)", how)
			second := bid.won(w, time.Minute)
			at := w.now()
			w.pass(20 * time.Second)
			w.assert(a.link.left() == 0, "the release met its fault (%s)", how)
			w.assert(valid(second) && w.record().Token == uint64(second.Token()) && w.record().Holder == b.name,
				"the release (%s) leaves alone the successor of %v", how, at)
		})
	}
}

// delayedWrite: a request applied after its caller gave up, or applied twice,
// never makes two leaders or a reused token: the checker looks at each lease
// and each write.
func delayedWrite(t *testing.T) {
	for _, delay := range []time.Duration{8 * time.Second, 20 * time.Second} {
		everyKind(t, func(w *world) { // a renewal, before and after a takeover
			a, b := w.node(nil), w.node(nil)
			l := a.lead()
			bid := b.campaign()
			a.link.next("swap", trip{out: delay})
			w.pass(4 * time.Second)
			w.assert(a.link.left() == 0, "the renewal is on its way")
			a.link.cut(true, true)
			bid.won(w, time.Minute)
			w.pass(delay)
			w.assert(!valid(l) && w.record().Holder == b.name, "the late renewal changes nothing")
		})
		everyKind(t, func(w *world) { // an acquisition that was given up
			a, b := w.node(nil), w.node(nil)
			a.link.next("swap", trip{out: delay, breaks: time.Millisecond})
			l, err := a.elector.TryCampaign(w.Context())
			w.assert(l == nil && err != nil, "an acquisition without an answer makes no leader")
			w.pass(delay)
			late := w.record()
			w.assert(late.Holder == a.name, "it is applied late")
			next := b.campaign().won(w, time.Minute)
			w.assert(w.now() > delay+claim && uint64(next.Token()) > late.Token, "it counts as held, and its token is used up")
		})
		everyKind(t, func(w *world) { // an acquisition that was tried again
			a := w.node(nil)
			a.link.next("swap", trip{out: delay, breaks: time.Millisecond}, trip{out: time.Millisecond, again: time.Second, back: time.Millisecond})
			l := a.lead()
			w.pass(2 * delay)
			w.assert(a.link.left() == 0 && valid(l), "of all writes of an acquisition one is applied")
		})
	}
}

// lateCreationTwice: the record is deleted twice, and then a creation that was
// on its way all the time is applied: its sender's lease is long over, and yet
// it must not retake its record at once, as another one leads whom it has never
// seen.
func lateCreationTwice(t *testing.T) {
	for _, cut := range []bool{false, true} {
		everyKind(t, func(w *world) {
			a, b := w.node(nil), w.node(nil)
			a.link.next("swap", trip{out: 20 * time.Second, breaks: time.Millisecond})
			first := a.lead()
			w.passUntil(4 * time.Second)
			w.check.spoil(nil)
			a.link.cut(cut, cut)
			w.passUntil(12500 * time.Millisecond)
			a.link.cut(false, false)
			w.assert(!valid(first), "the first leader has lost")
			second := b.lead()
			w.passUntil(19500 * time.Millisecond)
			w.check.spoil(nil)
			w.passUntil(20100 * time.Millisecond)
			w.assert(w.record().Holder == a.name && valid(second), "the first creation is applied while another one leads")
			l, err := a.elector.TryCampaign(w.Context())
			w.assert(l == nil && errors.Is(err, elector.ErrHeld), "a creation that was in doubt is not retaken at once: %v", err)
			at := w.now()
			a.campaign().won(w, at+claim+every)
		})
	}
}
