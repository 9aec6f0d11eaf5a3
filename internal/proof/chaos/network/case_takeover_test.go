package network

import (
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// takeoverBound: a holder that is cut off is replaced, not before C after its
// last renewal and within tau.
func takeoverBound(s *scene) {
	o := short()
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	before := a.link.Count()
	began, cut := a.breaks(Cut)
	_, won := next.won("a holder that is cut off is replaced")
	a.lost(l)
	s.waited(won, a.lastSent(began), o.TTL)
	if d := won.Before - cut - b.allowance(began); d > takeoverWithin(o) {
		s.Errorf("B leads %v after the holder was cut off, later than tau = %v", d, takeoverWithin(o))
	}
	a.hit(before, began)
}

// lastSent returns a time before the candidate's last renewal was sent that was
// acknowledged before something happened.
func (c *candidate) lastSent(before time.Duration) (at time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, r := range c.requests {
		if r.op == "swap" && r.err == nil && r.at <= before {
			// It was told a little after it took that long.
			at = r.at - r.took - time.Second/10
		}
	}
	return at
}

// vanished: the record of a holder that is cut off is deleted.
func vanished(s *scene) {
	o := short()
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	before := a.link.Count()
	began, _ := a.breaks(Cut)
	deleted := history.BootTime()
	s.must(s.records.Delete(s.context(), s.election), "deleting the record")
	s.events.Tell(history.Event{Election: s.election, Kind: history.Removed, Before: deleted, At: history.BootTime()})
	_, won := next.won("an election whose record was deleted gets a leader again")
	s.waited(won, deleted, o.TTL)
	a.lost(l)
	a.hit(before, began)
}

// rollback: the record of a holder that is cut off returns to an older state,
// one without a holder.
func rollback(s *scene) {
	o := short()
	a, b, c := s.join(o), s.joinThrough(o), s.join(o)
	a.lead()
	s.must(a.Resign(s.context()), "resigning")
	backup, err := s.records.Get(s.context(), s.election)
	s.must(err, "reading the record")
	l := b.lead()
	next := c.campaign()
	c.sees(b)
	before := b.link.Count()
	began, _ := b.breaks(Cut)
	restored := history.BootTime()
	s.must(s.records.Put(s.context(), s.election, backup), "restoring the record")
	s.events.Tell(history.Event{Election: s.election, Kind: history.Restored, Before: restored, At: history.BootTime()})
	_, won := next.won("an election whose record was rolled back gets a leader again")
	s.waited(won, restored, o.TTL)
	b.lost(l)
	b.hit(before, began)
}

// partHolder: a holder that is cut off.
func partHolder(s *scene) { s.partition(Cut) }

// partOneWay: a holder whose requests arrive and whose answers do not.
func partOneWay(s *scene) { s.partition(LoseReplies) }

// partition cuts a holder off: its lease and its context are over in time, and
// the old lease stays over when the network is mended.
func (s *scene) partition(f Fault) {
	o := short()
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	before := a.link.Count()
	began, _ := a.breaks(f)
	a.endsInTime(l, began)
	second, won := next.won("a holder that is cut off is replaced")
	s.waited(won, a.lastSent(began), o.TTL)
	a.hit(before, began)
	a.heals()
	third := a.campaign()
	a.sees(b)
	a.lost(l)
	s.must(b.Resign(s.context()), "resigning")
	if last, _ := third.won("one who was cut off leads again"); last.Token() <= second.Token() {
		s.Errorf("A leads again with token %v after %v", last.Token(), second.Token())
	}
}

// endsInTime blocks until the lease's context has ended, and fails the case if
// that is later than H + 250 ms after the last answer.
func (c *candidate) endsInTime(l *elector.Lease, since time.Duration) {
	s := c.s
	s.Helper()
	ended := s.await(0, "the context of a lease that cannot be renewed ends", func(e history.Event) bool {
		return e.Kind == history.Canceled && e.Candidate == c.ID() && e.Token == l.Token()
	})
	// Answers that were under way may have been told after the fault began.
	answered := c.answered(ended.At)
	late := ended.Before - answered - c.hold - stalls.since(min(since, answered))
	if late > 250*time.Millisecond {
		s.Errorf("the context of %s ended %v after H (guarantee 6)", c.ID(), late)
	}
	c.lost(l)
}
