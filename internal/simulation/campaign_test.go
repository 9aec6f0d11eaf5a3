package simulation

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

var campaignCases = []simCase{
	{"sim/random", randomCampaign},
}

// randomCampaign runs many seeds, each a short life of 2 to 5 candidates in
// which everything goes wrong.
func randomCampaign(t *testing.T) {
	if *seedFlag != 0 {
		w, s := randomRun(t, *seedFlag)
		t.Logf("seed %d: %d elections, faults %v\n%s", *seedFlag, w.check.elections, s.counts, w.history.tail(1e9))
		return
	}
	var total tally
	var next atomic.Uint64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				seed := next.Add(1)
				if seed > uint64(*seedsFlag) || t.Failed() {
					return
				}
				total.add(randomRun(t, seed))
			}
		})
	}
	group.Wait()
	total.report(t)
}

// randomRun is one seed.
func randomRun(t *testing.T, seed uint64) (*world, *storm) {
	d := newDice(seed)
	var s *storm
	w := simulate(t, seed, kinds[d.below(len(kinds))], func(w *world) {
		s = &storm{w: w, ttl: d.between(time.Second, 30*time.Second), raw: d.chance(0.4)}
		s.timeout = s.ttl * 15 / 100
		s.wild = []float64{0, 0.02, 0.1, 0.3}[d.below(4)]
		for range 2 + d.below(4) {
			s.join(d, "")
		}
		s.play(d, 40*s.ttl)
		s.settle()
		s.recovers()
	})
	return w, s
}

// join adds a candidate that works for as long as the world lasts, under an
// identity of its own or of one that crashed.
func (s *storm) join(d *dice, id string) {
	number := len(s.w.nodes)
	n := s.w.node(func(n *node) {
		n.options.TTL = s.ttl
		if d.chance(0.2) {
			n.options.TTL = d.between(s.ttl/2, 2*s.ttl)
		}
		if id != "" {
			n.options.ID = id
		}
		n.machine.slack = s.slack(number)
		n.machine.drift(s.rate(d))
		n.machine.step(d.between(-time.Hour, time.Hour))
		n.link.random = s.trips(n, number)
		n.stream = s.streams(n, number)
	})
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	run, start := d.chance(0.5), d.between(1, s.ttl)
	if newDice(s.w.seed, uint64(number), 7).chance(0.5) {
		n.company(ctx)
	}
	go func() {
		time.Sleep(start)
		n.serve(ctx, run)
	}()
}

// serve campaigns and works, by Run or by Campaign, until the context ends.
func (n *node) serve(ctx context.Context, run bool) {
	for ctx.Err() == nil {
		if run {
			n.elector.Run(ctx, n.work)
			continue
		}
		l, err := n.elector.Campaign(ctx)
		if err == nil {
			n.work(l.Context(), l)
			l.Resign(ctx)
		}
	}
}

// work is what a leader does until its context ends, or it has had enough.
func (n *node) work(ctx context.Context, l *elector.Lease) error {
	n.w.check.acquired(n, l)
	d := newDice(n.w.seed, uint64(l.Token()), 5)
	enough := n.w.now() + d.between(0, 12*n.options.TTL)
	for ctx.Err() == nil && n.w.now() < enough {
		n.machine.sleep(ctx, d.between(0, n.options.TTL/2))
		l.Check()
		n.w.check.sample()
	}
	if d.chance(0.5) { // it takes its time to stop
		n.machine.sleep(n.w.Context(), d.between(0, n.options.TTL/2))
	}
	return nil
}

// recovers checks that somebody leads soon after all faults have ended.
func (s *storm) recovers() {
	w := s.w
	bound := w.now() + 8*s.ttl
	for {
		w.pass(s.ttl / 10)
		w.check.sample()
		if w.check.led() {
			return
		}
		w.assert(w.now() < bound, "somebody leads soon after the faults have ended")
	}
}

// led reports whether a lease is valid now.
func (c *checker) led() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, o := range c.leases {
		if o.lease.Remaining() > 0 {
			return true
		}
	}
	return false
}
