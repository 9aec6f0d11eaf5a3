package network

import (
	"context"
	"errors"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// handover: over a slow network too, a resignation wakes the successor, which
// then leads soon, and after one write.
func handover(s *scene) {
	const jitter = 250 * time.Millisecond // J
	o := lasting()
	a, b := s.joinThrough(o), s.joinThrough(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	const d = 30 * time.Millisecond
	counts := []Count{a.link.Count(), b.link.Count()}
	for _, c := range []*candidate{a, b} {
		s.must(c.link.Delay(d, d), "delaying requests and answers")
		c.breaks(Latency)
	}
	a.renewals(2)
	next.waits("another candidate leads")
	if bids, _ := b.asked("swap", 0); bids > 1 {
		s.Errorf("a waiter bids once in a term, and wrote %d times", bids)
	}
	from := s.events.Position()
	s.must(l.Release(s.context()), "resigning")
	told := a.tells(from, history.Released, "a resignation reaches the store")
	_, won := next.won("a leader that resigned is replaced")
	// A store that pushes nothing is asked once or twice in an interval.
	s.didNotWait(won, told.At, o.TTL)
	most := jitter + 4*2*d
	if _, pushes := backends.AsWatcher(b.backend); !pushes {
		most += 2 * b.every
	}
	if took := won.Before - told.At - b.allowance(told.At); took > most {
		s.Errorf("the successor leads %v after the resignation, and J, a wake-up and two round trips are %v", took, most)
	}
	if n, _ := b.asked("swap", 0); n < 1 || n > 2 { // its bid may have come as late as the resignation
		s.Errorf("the successor bids once at most and writes once, and wrote %d times", n)
	}
	for i, c := range []*candidate{a, b} {
		if c.link.Count().Sum() == counts[i].Sum() {
			s.Errorf("nothing of %s was delayed", c.ID())
		}
	}
}

// failRetry: a leader that could not tell the store does not lead, and may lead again at
// once when the network is back.
func failRetry(s *scene) {
	o := lasting()
	o.ReleaseTimeout = 2 * time.Second
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	before := a.link.Count()
	began, _ := a.breaks(LoseRequests)
	if err := l.Release(s.context()); err == nil {
		s.Errorf("a resignation that never reached the store succeeds")
	}
	if err := l.Check(); !errors.Is(err, elector.ErrResigned) {
		s.Errorf("Check returns %v after a resignation that never reached the store", err)
	}
	if _, err := b.TryCampaign(s.context()); !errors.Is(err, elector.ErrHeld) {
		s.Errorf("a candidate's TryCampaign gives %v although the store was not told", err)
	}
	a.hit(before, began)
	a.heals()
	if err := l.Release(s.context()); err == nil {
		s.Errorf("a release that was given up succeeds later")
	}
	from, at := s.events.Position(), history.BootTime()
	a.lead()
	s.didNotWait(a.tells(from, history.Acquired, "it leads again"), at, o.TTL)
}

// isRelease reports whether a request tells the store that no candidate leads.
func isRelease(c fault.Call) bool { return c.Op == "swap" && c.Next.Vacant() }

// ambiguousRelease: the answer to a release is lost, and a successor wins
// before the release is tried again: that leaves the successor alone.
func ambiguousRelease(s *scene) {
	o := lasting()
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	began := history.BootTime()
	first, again, won := make(chan struct{}), make(chan struct{}), make(chan struct{})
	releases := 0 // of one goroutine
	a.hooks.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		var err error
		if isRelease(c) {
			switch releases++; releases {
			case 1:
				err = a.link.Break(LoseReplies)
				close(first)
			case 2: // it could not read back
				<-won
				err = a.link.Heal()
				close(again)
			}
		}
		if err != nil {
			s.Errorf("breaking the network: %v", err)
		}
		return send(context.WithoutCancel(ctx))
	})
	resigned := make(chan error, 1)
	s.all.Go(func() { resigned <- l.Release(s.context()) })
	within(s, first, "the resignation reaches the store")
	second, successor := next.won("a release whose answer was lost hands over")
	s.didNotWait(successor, began, o.TTL)
	close(won)
	within(s, again, "a release whose answer was lost is sent again")
	s.must(within(s, resigned, "Release returns"), "a release whose answer was lost")
	if r := s.record(b.backend); r.Holder != b.ID() || elector.Token(r.Token) != second.Token() {
		s.Errorf("after the release was sent again the record is %+v", r)
	}
	b.renewals(1)
	s.must(second.Check(), "the successor's lease after the release was sent again")
}
