package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/rule"
)

// A sitting moves its slots here: adopt makes them follow the plan, and step does what is due.

// adopt makes the slots follow the latest plan.
func (s *sitting) adopt() {
	g := s.group
	now := g.now()
	p := cmp.Or(s.follower.reported().plan, s.plan)
	// When to begin to take a partition.
	first := now
	if p != nil && !p.founding { // its owner must see the plan too
		first += g.options.RenewEvery / 32
	}
	if p != s.plan {
		s.plan, s.table, s.share = p, p.table(), 0
		for partition := range s.table {
			if !s.mine(partition) {
				continue
			}
			s.share++
			if s.slots[partition] == nil && s.leaving == 0 {
				s.slots[partition] = &slot{partition: partition, since: now, next: first}
			}
		}
		s.forget()
		g.tracePlanned(s.ctx, s.share)
	}
	planned := s.planned()
	moving := 0
	for _, x := range s.slots {
		if x.state == draining && now-x.since < g.options.RenewEvery {
			moving++
		}
	}
	for partition, x := range s.slots {
		switch mine := planned && s.mine(partition); {
		case x.state == wanted && x.doubt == nil && (!mine || s.leaving != 0):
			if delete(s.slots, partition); x.owes {
				s.slots[partition] = &slot{partition: partition, state: told, since: now, next: now + s.auditEvery()}
			}
		case x.state == told && mine && s.leaving == 0:
			s.slots[partition] = &slot{partition: partition, since: now, next: first, owes: true}
		case x.state == held && mine:
			x.yields = yields{}
		case x.state == held && x.doubt == nil && s.yield(x, now) <= now && (moving < most || s.leaving != 0):
			moving++
			audit := x.next
			x.enter(draining, now)
			x.until = s.deadline(now)
			x.next = min(audit, x.until)
			x.lease.stop("the partition moves to another member of the group")
		}
	}
}

// yield returns when this process gives up a partition that it owns and the plan gives to another
// seat: at once if the store pushes the plan. Elsewhere the other process sees it up to a
// renewal interval later, so the worker works on for that time, if another one is to come.
func (s *sitting) yield(x *slot, now time.Duration) time.Duration {
	o, r := s.group.options, s.follower.reported()
	taker := s.table[x.partition]
	y := &x.yields
	switch {
	case y.since == 0:
		*y = yields{seat: taker, since: now, first: now}
	case y.seat != taker:
		y.seat, y.since = taker, now
	}
	y.at = min(y.since+o.RenewEvery, y.first+2*o.RenewEvery)
	if s.leaving != 0 {
		y.at = min(y.at, s.leaving+o.ReleaseTimeout*3/4)
	}
	if taker == s.own.Seat || s.plan.founding || r.refused != nil || r.alone || r.live {
		y.at = now
	}
	return y.at
}

// forget drops what was seen of incarnations that no partition names which this process
// waits for.
func (s *sitting) forget() {
	named := map[rule.Incarnation]bool{}
	for _, x := range s.slots {
		if in, err := rule.Holder(x.record); err == nil && x.state == wanted {
			named[in] = true
		}
	}
	s.seats.Forget(func(i rule.Incarnation) bool { return named[i] })
}

// step does what is due, and returns when to do more.
func (s *sitting) step(ctx context.Context) (next time.Duration) {
	g := s.group
	for _, x := range s.slots {
		if x.returned.CompareAndSwap(true, false) {
			s.reap(x)
		}
	}
	now := g.now()
	requests, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if s.leaving == 0 { // so that requests without an answer do not hold up that it leaves
		defer context.AfterFunc(ctx, cancel)()
		defer context.AfterFunc(s.lease.Context(), cancel)()
	} else {
		defer g.clock.AfterFunc(max(0, s.leaving+g.options.ReleaseTimeout-now), cancel)()
	}
	var writes, takes, doubts, checks []*slot
	for _, x := range s.slots {
		if x.state == held && x.lease.valid() != nil { // not audited in time
			x.enter(draining, now)
			x.until = s.deadline(now)
		}
		switch {
		case x.state == held && s.hangs(x, now) <= now:
			g.log.Error("elector: a worker has not called Check in time; its lease on the partition is over", "partition", x.partition, "token", x.lease.Token(), "timeout", g.options.StallTimeout)
			s.overdue(x, fmt.Errorf("%w: the worker did not call Check for %v", elector.ErrLost, g.options.StallTimeout))
		case x.state == draining && now >= x.until:
			g.log.Error("elector: a worker has not returned in time; its lease on the partition is over", "partition", x.partition, "token", x.lease.Token(), "timeout", g.options.ReleaseTimeout)
			s.overdue(x, fmt.Errorf("%w: the worker did not return within %v of being told to stop", elector.ErrLost, g.options.ReleaseTimeout))
		case x.next > now:
		case x.doubt != nil:
			doubts = append(doubts, x)
		case x.state == wanted:
			takes = append(takes, x)
		case x.state == draining && x.lease.valid() != nil:
			x.next = x.until
		case x.state == ended, x.leased() && rule.Unconfirmed(x.record):
			writes = append(writes, x)
		case x.state == held, x.state == draining, x.state == told:
			checks = append(checks, x)
		case x.state == lost:
			s.gone(x)
		}
	}
	writes = some(writes)
	for _, x := range writes {
		s.intendNext(x)
	}
	s.write(requests, writes)
	s.take(requests, some(takes))
	s.check(requests, append(some(doubts), some(checks)...))
	s.announceWhole()
	next = g.now() + g.options.RenewEvery
	for _, x := range s.slots {
		next = min(next, x.next)
		if x.state == held {
			next = min(next, s.hangs(x, g.now()))
		}
		if x.state == held && x.yields.since != 0 && x.doubt == nil {
			next = min(next, max(x.yields.at, g.now()+g.options.RenewEvery/32)) // or others move first
		}
	}
	return next
}

// hangs returns when a worker counts as one that hangs, as it has not called Check in time. It
// looks twice, because after a pause of the process no worker has.
func (s *sitting) hangs(x *slot, now time.Duration) time.Duration {
	at := x.lease.stalls()
	if now >= at && x.stalls != at {
		x.stalls, x.looked = at, now
	}
	if x.stalls == at {
		return x.looked + s.group.options.RenewEvery/16
	}
	return at
}

// overdue ends a lease whose worker was not in time. The worker's call is left behind, and another
// one begins once the record is vacant: later by C, for a worker that is only slow.
func (s *sitting) overdue(x *slot, err error) {
	g := s.group
	info := s.over(x, ended, "timeout", err)
	x.until = g.now() + g.challenge()
	x.next = x.until
	g.traceEnded(info)
}

// reap notes that the worker of a slot has returned.
func (s *sitting) reap(x *slot) {
	switch {
	case x.state == draining, x.state == held && x.lease.ctx.Err() != nil:
		info := s.over(x, ended, "returned", fmt.Errorf("%w: the partition was given up", elector.ErrResigned))
		x.until = x.next
		s.group.traceEnded(info)
	case x.state == held:
		s.group.log.Warn("elector: the worker has ended its goroutine; it is called again", "partition", x.partition, "token", x.lease.Token(), "pause", longestPause)
		s.start(x, longestPause)
		s.group.traceFailed(x.lease, errors.New("the worker ended its goroutine"))
	case x.state == lost:
		s.gone(x)
	}
}

// announceWhole announces, while the plan is founding, that all partitions of this process
// have a record.
func (s *sitting) announceWhole() {
	id, founding := s.founding()
	if !founding {
		return
	}
	for _, x := range s.slots {
		if x.state != told && (!x.record.Exists() || rule.Unconfirmed(x.record)) && !x.foreign {
			return
		}
	}
	s.follower.tell(func(c *commission) { c.wish.whole = id })
}
