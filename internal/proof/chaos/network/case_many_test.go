package network

import (
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// manyCandidates: one of 20 leads. Those who wait write nothing, and few write
// when it resigns or is cut off.
func manyCandidates(s *scene) {
	const n = 20
	o := elector.Options{TTL: 6 * time.Second, RenewEvery: time.Second, RequestTimeout: time.Second}
	first := s.joinThrough(o)
	l := first.lead()
	handles := make([]backends.Backend, 4)
	for i := range handles {
		handles[i] = s.handle(s.store.URL)
	}
	wins := make(chan *campaign, n)
	var waiting []*campaign
	for i := range n - 1 {
		p := s.joinWith(handles[i%len(handles)], nil, o).campaign()
		waiting = append(waiting, p)
		s.all.Go(func() {
			<-p.done
			if p.err == nil {
				wins <- p
			}
		})
	}
	writes := func() (sum int) {
		for _, p := range waiting {
			sum += int(p.c.acquiring.Load())
		}
		return sum
	}
	saw := func(leader *candidate) {
		s.Helper()
		for _, p := range waiting {
			p.c.sees(leader)
		}
	}
	saw(first)
	idle, started := writes(), history.BootTime()
	first.renewals(2)
	if w := writes() - idle; w != 0 {
		s.Errorf("%d waiters wrote %d times while another candidate led", n-1, w)
	}
	// Two reads in each interval where nothing is pushed.
	if d := handles[0].Describe(); !d.PushesRenewals {
		reads, lasted := 0, history.BootTime()-started
		for _, p := range waiting {
			r, _ := p.c.asked("load", started)
			reads += r
		}
		if most := (n - 1) * (4 + int(3*lasted/o.RenewEvery)); reads > most {
			s.Errorf("%d waiters read %d times in %v, more than %d", n-1, reads, lasted, most)
		}
	}

	// takeover returns the winner, and how many writes it took.
	takeover := func(after string, leave func()) (*campaign, int) {
		s.Helper()
		before := writes()
		leave()
		p := within(s, wins, "one of the waiters leads after "+after)
		wrote := writes() - before
		waiting = slices.DeleteFunc(waiting, func(other *campaign) bool { return other == p })
		saw(p.c)
		return p, max(wrote, writes()-before+1)
	}
	before := first.link.Count()
	var began time.Duration
	leader, wrote := takeover("the leader was cut off", func() { began, _ = first.breaks(Cut) })
	first.lost(l)
	first.hit(before, began)
	// A machine that stands still when they wake makes them all late together,
	// so one takeover of a few counts.
	fewest := wrote
	for range 3 {
		leader, wrote = takeover("a release", func() { s.must(leader.l.Release(s.context()), "resigning") })
		fewest = min(fewest, wrote)
	}
	if fewest > n/4 {
		s.Errorf("at each takeover %d of %d waiters wrote", fewest, len(waiting))
	}
}
