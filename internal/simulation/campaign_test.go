package simulation

import (
	"testing"
	"time"
)

var campaignCases = []simCase{
	{"sim/random", randomCampaign},
}

// randomCampaign runs many seeds, each a short life of 2 to 5 candidates in
// which everything goes wrong, and in every other one, drawn by the seed, much
// more: see wild.
func randomCampaign(t *testing.T) {
	if *seedFlag != 0 {
		w, s := randomRun(t, *seedFlag)
		t.Logf("seed %d: %d elections, faults %v\n%s", *seedFlag, w.check.elections, s.counts, w.history.tail(1e9))
		return
	}
	total := tally{taken: map[string]int{}}
	overSeeds(t, *seedsFlag, func(seed uint64) { total.add(randomRun(t, seed)) })
	total.report(t)
}

// randomRun is one seed.
func randomRun(t *testing.T, seed uint64) (*world, *storm) { return judged(t, seed, false) }

// judged is one seed. If alone is set, only the replays of the steps judge it.
func judged(t *testing.T, seed uint64, alone bool) (*world, *storm) {
	d := newDice(seed)
	var s *storm
	w := simulate(t, seed, kinds[d.below(len(kinds))], func(w *world) {
		w.alone, w.random = w.alone || alone, true
		s = &storm{w: w, ttl: d.between(time.Second, 30*time.Second), raw: d.chance(0.4)}
		s.timeout = s.ttl * 15 / 100
		s.faulty = []float64{0, 0.02, 0.1, 0.3}[d.below(4)]
		if newDice(seed, 8).chance(0.5) {
			s.goWild()
		}
		for range 2 + d.below(4) {
			s.join(d, "")
		}
		s.play(d, 40*s.ttl)
		s.settle()
		if alone {
			return
		}
		s.recovers()
		if s.wild != nil {
			s.wild.pester()
		}
	})
	return w, s
}

// join adds a candidate that works for as long as the world lasts, under an
// identity of its own or of one that crashed.
func (s *storm) join(d *dice, id string) {
	number := len(s.w.all())
	n := s.w.node(func(n *node) {
		n.storm = s
		n.options.TTL = s.ttl
		if d.chance(0.2) {
			n.options.TTL = d.between(s.ttl/2, 2*s.ttl)
		}
		if id != "" {
			n.options.ID = id
		}
		if s.wild != nil {
			s.wild.adjust(n)
		}
		n.machine.slack = s.slack(number)
		n.machine.drift(n.rate(d))
		n.machine.step(d.between(-s.far(), s.far()))
		n.link.random = s.trips(n)
		if s.wild != nil {
			n.link.creates = s.wild.creation
		}
		n.stream = s.streams(n, number)
	})
	run, start := d.chance(0.5), d.between(1, s.ttl)
	if newDice(s.w.seed, n.number, 7).chance(0.5) {
		n.company(n.life)
	}
	if s.wild != nil {
		s.wild.begins(n, start)
		return
	}
	go func() {
		time.Sleep(start)
		n.serve(run)
	}()
}

// far is how far the time of day of machines is off at most.
func (s *storm) far() time.Duration {
	if s.wild != nil {
		return 100 * time.Hour
	}
	return time.Hour
}

// recovers checks that a node leads soon after all faults have ended.
func (s *storm) recovers() {
	w := s.w
	bound := w.now() + 8*s.ttl
	if s.wild != nil {
		bound += 4 * s.wild.longest()
	}
	for {
		w.pass(s.ttl / 10)
		w.check.sample()
		if w.check.led() {
			return
		}
		w.assert(w.now() < bound, "a node leads soon after the faults have ended")
	}
}

// led reports whether a lease is valid now.
func (c *checker) led() bool { return c.leader() != nil }

// leader returns a lease that is valid now and whose process lives, nil if there
// is none.
func (c *checker) leader() *office {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, o := range c.leases {
		if o.lease.Remaining() > 0 && !o.n.crashed.Load() {
			return o
		}
	}
	return nil
}
