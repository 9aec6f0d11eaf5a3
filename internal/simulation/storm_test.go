package simulation

import (
	"sync"
	"time"
)

// A storm draws the faults of one random run.
type storm struct {
	w       *world
	ttl     time.Duration // of most nodes
	faulty  float64       // part of requests that meet a fault
	raw     bool          // the store loses records too
	timeout time.Duration // about RequestTimeout
	wild    *wild         // nil unless it is a wild run

	mutex  sync.Mutex
	calm   bool
	counts [faultKinds]int
}

func (s *storm) hit(k faultKind, n *node) {
	s.mutex.Lock()
	s.counts[k]++
	s.mutex.Unlock()
	if n != nil {
		n.log("fault: %v", k)
	}
}

func (s *storm) calmed() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.calm
}

// settle ends all faults.
func (s *storm) settle() {
	s.mutex.Lock()
	s.calm = true
	s.mutex.Unlock()
	s.w.check.edit(strip("c_"))
	for _, n := range s.w.all() {
		if !n.crashed.Load() {
			n.link.cut(false, false)
			n.machine.wake()
		}
	}
}

// trips returns what the network does to a node's requests. It depends on the
// instant, not on the order in which requests are made.
func (s *storm) trips(n *node) network {
	return func(op string, who uint64) trip {
		d := newDice(s.w.seed, who, uint64(s.w.now()), uint64(op[0]), 2)
		near := s.timeout / 50
		lag := newDice(s.w.seed, who, uint64(s.w.now()), uint64(op[0]), 22).between(0, time.Microsecond)
		t := trip{lag: lag, out: d.between(near/20, near), back: d.between(near/20, near)}
		if s.calmed() || !d.chance(s.faulty) {
			return t
		}
		kind := faultKind(d.below(int(suspendedSending) + 1))
		if op == "load" && kind >= appliedLate && kind <= conflictAnswered {
			kind = slowAnswer
		}
		switch kind {
		case slowRequest:
			t.out = d.between(0, 2*s.timeout)
		case slowAnswer:
			t.back = d.between(0, 2*s.timeout)
		case requestLost:
			t.lost = true
		case requestRefused:
			t.lost, t.breaks = true, t.out
		case answerLost:
			t.mute = true
		case answerBroken:
			t.mute, t.breaks = true, t.out+t.back
		case appliedLate:
			t.out = d.between(0, 3*s.ttl)
			if d.chance(0.5) {
				t.breaks = near
			}
		case appliedTwice:
			t.again = d.between(1, 2*s.ttl)
		case conflictAnswered:
			t.again, t.second = d.between(1, near), true
		case pausedSending:
			t.pause = d.between(0, 2*s.ttl)
		case suspendedSending:
			t.suspend = d.between(0, 2*s.ttl)
		}
		s.hit(kind, n)
		return t
	}
}

// streams returns how long a node's watches live and how late they push.
func (s *storm) streams(n *node, number int) func() (time.Duration, func() time.Duration) {
	return func() (time.Duration, func() time.Duration) {
		d := newDice(s.w.seed, uint64(number), uint64(s.w.now()), 3)
		life := 1000 * time.Hour
		if !s.calmed() && s.faulty > 0 {
			life = d.between(s.ttl/10, 20*s.ttl)
			time.AfterFunc(life, func() { s.hit(streamBroke, nil) })
		}
		return life, func() time.Duration {
			if !s.calmed() && d.chance(s.faulty) {
				return d.between(0, s.ttl)
			}
			return d.between(0, s.timeout/50)
		}
	}
}

// slack makes timers a little late, so that no two things happen at the same
// instant: their order would not be the seed's.
func (s *storm) slack(number int) func(time.Duration) time.Duration {
	return func(d time.Duration) time.Duration {
		return newDice(s.w.seed, uint64(number), uint64(s.w.now()), uint64(d), 4).between(1, 20*time.Microsecond)
	}
}
