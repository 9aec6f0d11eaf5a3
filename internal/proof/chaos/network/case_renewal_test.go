package network

import (
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// fromSend: answers that are late by d extend the lease to what it would be
// without, counted from when the renewal was sent.
func fromSend(s *scene) {
	const d = 300 * time.Millisecond
	o := steady()
	o.RequestTimeout = o.RenewEvery
	a := s.joinThrough(o)
	a.lead()
	before := a.link.Count()
	s.must(a.link.Delay(0, d), "delaying answers")
	a.breaks(SlowReplies)
	a.renewals(1) // the answer to this one may have come before
	for range 2 {
		if e := a.renewals(1); e.Left > a.hold-d {
			s.Errorf("a lease whose renewal was answered after %v has %v left, and H is %v (guarantee 2)", d, e.Left, a.hold)
		}
	}
	if a.link.Count().Replies == before.Replies {
		s.Errorf("no answer was late")
	}
}

// renewTransient: connections are reset for as long as half of the lease is
// left, and nothing is lost.
func renewTransient(s *scene) {
	a := s.joinThrough(steady())
	l := a.lead()
	a.renewals(1)
	before := a.link.Count()
	began, _ := a.breaks(Reset)
	s.until("half of the lease is over", func() bool { return l.Remaining() < a.hold/2 })
	a.heals()
	a.renewals(2)
	s.must(l.Check(), "the lease after errors for half of H")
	a.hit(before, began)
}

// renewOneHang: a renewal that hangs is given up in time for another one.
func renewOneHang(s *scene) {
	a := s.joinThrough(steady())
	l := a.lead()
	a.renewals(1)
	a.ridesOutHang(l)
}

// ridesOutHang cuts the network until a renewal is given up. The lease must go on.
func (c *candidate) ridesOutHang(l *elector.Lease) {
	c.s.Helper()
	before := c.link.Count()
	from := c.s.events.Position()
	began, _ := c.breaks(Cut)
	c.tells(from, history.Trouble, "a request that hangs is given up")
	c.heals()
	c.renewals(2)
	c.s.must(l.Check(), "the lease after a renewal that hung")
	c.hit(before, began)
}

// renewFar: a store is far away, and the connections break once. Setting up others takes
// longer than a request may, on stores that sign in.
func renewFar(s *scene) {
	a := s.joinThrough(lasting())
	l := a.lead()
	a.renewals(1)
	before := a.link.Count()
	a.breaks(Reset)
	s.until("the connections are reset", func() bool { return a.link.Count().Connections > before.Connections })
	s.must(a.link.Delay(75*time.Millisecond, 75*time.Millisecond), "moving the store away")
	a.breaks(Latency)
	a.renewals(3)
	s.must(l.Check(), "the lease on a store that is far away")
}

// renewLogStalls: no process reads the log while a renewal hangs.
func renewLogStalls(s *scene) {
	a := s.joinThrough(steady())
	l := a.lead()
	a.renewals(1)
	a.log.mutex.Lock()
	defer a.log.mutex.Unlock()
	a.ridesOutHang(l)
}

// renewHung: no request arrives any more, and each one hangs; the lease ends
// by H, and Check does not wait for anything.
func renewHung(s *scene) {
	a := s.joinThrough(short())
	l := a.lead()
	a.renewals(1)
	before := a.link.Count()
	began, _ := a.breaks(LoseRequests)
	a.endsInTime(l, began)
	a.hit(before, began)
	looks := 0
	events, _, _ := s.events.From(0)
	for _, e := range events {
		if e.Kind == history.Checked && e.Before >= began {
			looks++
			if took := e.At - e.Before - stalls.since(began); took > 100*time.Millisecond {
				s.Errorf("Check took %v while requests hang", took)
			}
		}
	}
	if looks < 3 {
		s.Errorf("Check was called %d times while requests hang", looks)
	}
}

// slowThenCut: a renewal is answered late, and then the network is cut. A read must still
// be answered in time, of two requests on some stores: the waiter may write its bid, and
// the holder reads it before its next renewal.
func slowThenCut(s *scene) {
	o := short()
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	a.renewals(1)
	before := a.link.Count()
	s.must(a.link.Delay(0, 200*time.Millisecond), "delaying answers")
	began, _ := a.breaks(SlowReplies)
	a.renewals(1)
	slow := a.renewals(1)
	if a.link.Count().Replies == before.Replies {
		s.Errorf("no answer was late")
	}
	cut := a.link.Count()
	a.breaks(Cut)
	_, won := next.won("a holder that is cut off is replaced")
	s.waited(won, slow.Before+slow.Left-a.hold, o.TTL)
	a.endsInTime(l, began)
	a.hit(cut, slow.At)
}
