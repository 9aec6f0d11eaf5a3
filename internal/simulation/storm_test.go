package simulation

import (
	"sync"
	"time"
)

// A faultKind is something that can go wrong in the random campaign, where each
// is counted: a fault that never happens proves nothing.
type faultKind int

const (
	slowRequest faultKind = iota
	slowAnswer
	requestLost
	requestRefused
	answerLost
	answerBroken
	appliedLate
	appliedTwice
	conflictAnswered
	pausedSending
	suspendedSending
	nodePaused
	nodeSuspended
	wallForward
	wallBack
	suspendHidden
	rateChanged
	timersHeld
	cutOff
	cutOneWay
	streamBroke
	crashed
	restarted
	recordVanished
	recordRolledBack
	faultKinds
)

func (k faultKind) String() string {
	return [...]string{
		"request slow", "answer slow", "request lost", "request refused", "answer lost", "answer broken off",
		"applied late, given up", "applied twice", "own conflict answered", "paused before sending",
		"suspended before sending", "node paused", "node suspended", "wall clock forward", "wall clock back",
		"suspended, wall clock back", "clock rate changed", "timers held back", "cut off", "cut off one way",
		"watch broken", "crashed", "restarted", "record vanished", "record rolled back",
	}[k]
}

// A storm draws the faults of one random run.
type storm struct {
	w       *world
	ttl     time.Duration // of most nodes
	wild    float64       // part of requests that meet a fault
	raw     bool          // the store loses records too
	timeout time.Duration // about RequestTimeout

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
	for _, n := range s.w.nodes {
		if !n.crashed {
			n.link.cut(false, false)
			n.machine.wake()
		}
	}
}

// trips returns what the network does to a node's requests. It depends on the
// instant, not on the order in which requests are made.
func (s *storm) trips(n *node, number int) func(op string) trip {
	return func(op string) trip {
		d := newDice(s.w.seed, uint64(number), uint64(s.w.now()), uint64(op[0]), 2)
		near := s.timeout / 50
		t := trip{out: d.between(near/20, near), back: d.between(near/20, near)}
		if s.calmed() || !d.chance(s.wild) {
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
		if !s.calmed() && s.wild > 0 {
			life = d.between(s.ttl/10, 20*s.ttl)
			time.AfterFunc(life, func() { s.hit(streamBroke, nil) })
		}
		return life, func() time.Duration {
			if !s.calmed() && d.chance(s.wild) {
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
