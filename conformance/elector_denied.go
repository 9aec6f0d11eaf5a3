package conformance

import (
	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/fault"
)

// auth/denied: the store refuses the leader and a waiter for a while. The lease ends by H,
// neither campaign ends, and both lead again without a restart. One that the store has never
// answered ends at once.
func denied(s *suite) {
	el := s.election("")
	o := s.short()
	a, b := el.join(o), el.join(o)
	l := a.lead()
	next := b.challenge(a)
	for _, c := range []*candidate{a, b} {
		c.faults.CutWatches(elector.ErrDenied)
		c.faults.Always(fault.Fails(elector.ErrDenied))
	}
	s.is(a.lapses(l, "it is refused"), elector.ErrLost, "Check of a leader that the store refuses")
	again := a.campaign(s.context())
	for _, p := range []*campaign{again, next} {
		p.c.await(p.started, "refused", "a campaign that the store refuses tries again")
	}
	again.waits("it has led")
	next.waits("it has seen another one lead")

	fresh := el.join(o)
	fresh.faults.Always(fault.Fails(elector.ErrDenied))
	_, err := fresh.Campaign(s.context())
	s.is(err, elector.ErrDenied, "Campaign of one that the store has never answered")

	b.faults.CutWatches(nil)
	b.faults.Always(nil)
	second := next.won("a waiter that the store refused for a while leads")
	s.grows(l.Token(), second.Token(), "after a refusal")
	s.must(b.Resign(s.context()), "resigning")
	a.faults.CutWatches(nil)
	a.faults.Always(nil)
	again.won("a leader that the store refused for a while leads again")
}
