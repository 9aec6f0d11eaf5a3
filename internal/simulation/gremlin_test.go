package simulation

import "time"

// play lets things go wrong with machines, cables and the store, until a time.
func (s *storm) play(d *dice, until time.Duration) {
	for {
		time.Sleep(d.between(s.ttl/50, s.ttl))
		if s.w.now() >= until {
			return
		}
		nodes := s.w.all()
		n := nodes[d.below(len(nodes))]
		if n.crashed.Load() {
			continue
		}
		if s.wild != nil && d.chance(0.4) {
			s.wild.tamper(d, n)
			continue
		}
		kind := nodePaused + faultKind(d.below(int(recordRolledBack+1-nodePaused)))
		length := d.between(0, 2*s.ttl)
		if d.chance(0.5) {
			length /= 8
		}
		switch kind {
		case nodePaused:
			n.machine.pause(length)
		case nodeSuspended:
			n.machine.suspend(length)
		case wallForward:
			n.machine.step(d.between(0, time.Duration(d.below(3))*s.ttl))
		case wallBack:
			n.machine.step(-d.between(0, time.Duration(1+d.below(50))*s.ttl))
		case suspendHidden:
			n.machine.suspend(length)
			n.machine.step(-d.between(0, 2*length))
		case rateChanged:
			n.machine.drift(n.rate(d))
		case timersHeld:
			n.machine.holdTimers(length)
		case cutOff, cutOneWay:
			out, in := true, true
			if kind == cutOneWay {
				out = d.chance(0.5)
				in = !out
			}
			n.link.cut(out, in)
			time.AfterFunc(length, func() { n.link.cut(false, false) })
		case crashed:
			s.crash(n)
			if s.alive() < 2 || d.chance(0.8) {
				delay := d.between(0, 2*s.ttl)
				time.Sleep(delay)
				s.hit(restarted, n)
				s.join(d, n.options.ID)
			}
		case recordVanished, recordRolledBack:
			if !s.raw || !s.lose(d, kind) {
				continue
			}
		default:
			continue
		}
		s.hit(kind, n)
	}
}

// rate is a clock's rate within the node's own rho, often at its bounds.
func (n *node) rate(d *dice) float64 {
	switch d.below(4) {
	case 0:
		return 1 - rho(n)
	case 1:
		return 1 + rho(n)
	}
	return 1 - rho(n) + 2*rho(n)*d.float()
}

// alive returns how many processes have not crashed.
func (s *storm) alive() int {
	machines := map[*machine]bool{}
	for _, n := range s.w.all() {
		if !n.crashed.Load() {
			machines[n.machine] = true
		}
	}
	return len(machines)
}

// crash stops a process for good.
func (s *storm) crash(n *node) {
	for _, mate := range s.w.all() {
		if mate.machine == n.machine {
			mate.crashed.Store(true)
		}
	}
	n.machine.pause(10000 * time.Hour)
	n.link.cut(true, true)
}

// lose deletes the record or brings one of its last states back.
func (s *storm) lose(d *dice, kind faultKind) bool {
	if kind == recordVanished {
		if s.w.store.Get(election) == nil {
			return false
		}
		s.w.check.spoil(nil)
		return true
	}
	old := s.w.check.older(1 + d.below(20))
	if old == nil {
		return false
	}
	s.w.check.spoil(old)
	return true
}

// older returns the state of the record so many writes ago, nil if there was
// none.
func (c *checker) older(writes int) []byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if writes > len(c.old) {
		return nil
	}
	return c.old[len(c.old)-writes]
}
