package partition

import (
	"context"
	"fmt"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// vacate makes the records vacant of partitions that were given up.
func (s *sitting) vacate(ctx context.Context, slots []*slot) {
	g := s.group
	var changes []backends.Change
	for _, x := range slots {
		next := x.record
		next.Holder, next.Value = "", ""
		next.Attempt.Sequence++
		next.Extensions = next.Extensions.Without(rule.NewName)
		changes = append(changes, backends.Change{Name: g.record(x.partition), Prev: x.record, Next: next})
	}
	for i, o := range s.swap(ctx, changes) {
		x := slots[i]
		if o.Err == nil {
			s.gone(x, o.Record)
			continue
		}
		x.doubt = &changes[i]
		if s.later(x); isRefused(o.Err) {
			x.next = g.now() // see what is there
		}
	}
}

// gone notes that a partition was given up, or taken away. The store may lose that, as in a
// failover, and a hand can put the record back: then it names this living incarnation, and
// no other process takes it. So it is read at the times of audits until another
// process has it.
func (s *sitting) gone(x *slot, r backends.Record) {
	if r.Exists() {
		s.see(x.partition, r)
	}
	x.enter(told, s.group.now())
	x.next = s.group.now() + s.auditEvery()
	s.again(x)
}

// again makes adopt look whether the plan gives a partition back.
func (s *sitting) again(x *slot) {
	if s.mine[x.partition] {
		s.added = nil
		wake(s.woken)
	}
}

// names reports whether a record is held through this incarnation.
func (s *sitting) names(r backends.Record) bool {
	in, err := rule.Holder(r)
	return r.Exists() && !r.Vacant() && err == nil && in == s.own
}

// anothers reports whether a record is held through another incarnation.
func (s *sitting) anothers(r backends.Record) bool {
	in, err := rule.Holder(r)
	return r.Exists() && !r.Vacant() && err == nil && in != s.own
}

// settle finds out what became of writes without an answer. A read that shows the state
// that the write compares with is followed by the same write.
func (s *sitting) settle(ctx context.Context, slots []*slot) {
	if len(slots) == 0 {
		return
	}
	var changes []backends.Change
	var unmade []*slot
	for i, o := range s.load(ctx, slots) {
		x := slots[i]
		switch {
		case x.state == ended && isForeign(o.Err): // there is nothing to make vacant
			x.doubt = nil
			s.gone(x, backends.Record{})
		case o.Err != nil:
			s.cannot(x, o.Err)
		case o.Record.Version == x.doubt.Prev.Version:
			changes = append(changes, *x.doubt)
			unmade = append(unmade, x)
		default:
			s.settled(x, o.Record)
		}
	}
	sent := clock.Mark(s.group.clock)
	for i, o := range s.swap(ctx, changes) {
		x := unmade[i]
		switch {
		case o.Err == nil:
			s.later(x)
			x.sent = sent
			s.settled(x, o.Record)
		case x.state == wanted && !isRefused(o.Err):
			s.cannot(x, o.Err)
		default: // also if it was refused: the read before has shown no reason
			s.later(x)
		}
	}
}

// settled ends a doubt: the record shows r. A creation that was in doubt is not believed, as
// other owners may have come since it was sent, and their records gone: it is replaced, with
// a token of now.
func (s *sitting) settled(x *slot, r backends.Record) {
	c := *x.doubt
	applied := r.Attempt == c.Next.Attempt
	x.doubt = nil
	switch {
	case x.state == ended && s.names(r) && !rule.Unconfirmed(r): // it was written again meanwhile
		x.record, x.next = r, max(x.until, s.group.now())
	case x.state == ended:
		s.gone(x, r)
	case (x.state == held || x.state == draining) && applied && x.lease.valid() == nil:
		s.rewritten(x, r)
	case (x.state == held || x.state == draining) && applied && !rule.Unconfirmed(r): // too late
		x.record, x.next = r, s.group.now()
	case x.state == held || x.state == draining:
		s.contradicted(x, r)
	case applied && !rule.Unconfirmed(r):
		s.taken(x, r, x.sent)
	case applied && s.founds() && !s.mine[x.partition]: // its new owner need not wait for A
		x.record = r
		x.enter(ended, s.group.now())
	default:
		s.later(x)
	}
}

// audit reads the records of partitions that this process owns.
func (s *sitting) audit(ctx context.Context, slots []*slot) {
	if len(slots) == 0 {
		return
	}
	sent := clock.Mark(s.group.clock)
	var changes []backends.Change
	var missing []*slot
	for i, o := range s.load(ctx, slots) {
		x, r := slots[i], o.Record
		switch {
		case o.Err != nil && (x.state != told || !isForeign(o.Err)):
			s.later(x)
		case x.state == told && s.names(r) && !rule.Unconfirmed(r):
			x.record = r
			x.enter(ended, s.group.now())
			x.until = x.next
		case x.state == told && !s.anothers(r): // it may show this incarnation yet
			x.next = s.group.now() + s.auditEvery()
		case x.state == told:
			delete(s.slots, x.partition)
			s.again(x)
		case r.Attempt == x.record.Attempt && r.Token == x.record.Token && r.Holder == x.record.Holder && r.Extensions.Class('c') == x.record.Extensions.Class('c'):
			x.record = r
			x.lease.audited.Store(&sent)
			s.auditLater(x)
		case !r.Exists() && x.lease.Remaining() > 0:
			s.group.log.Warn("elector: the record of a partition was deleted; its owner writes it again", "partition", x.partition, "token", x.lease.Token())
			next := x.record
			next.Attempt.Sequence++
			next.Extensions = rule.Created(next.Extensions)
			changes = append(changes, backends.Change{Name: s.group.record(x.partition), Prev: r, Next: next})
			missing = append(missing, x)
		default:
			s.contradicted(x, r)
		}
	}
	s.rewrite(ctx, missing, changes)
}

// confirm writes the records again that this process has written where there was none.
func (s *sitting) confirm(ctx context.Context, slots []*slot) {
	var changes []backends.Change
	for _, x := range slots {
		next := x.record
		next.Attempt.Sequence++
		next.Extensions = next.Extensions.Without(rule.NewName)
		changes = append(changes, backends.Change{Name: s.group.record(x.partition), Prev: x.record, Next: next})
	}
	s.rewrite(ctx, slots, changes)
}

// rewrite changes the records of leases, which go on.
func (s *sitting) rewrite(ctx context.Context, slots []*slot, changes []backends.Change) {
	sent := clock.Mark(s.group.clock)
	for i, o := range s.swap(ctx, changes) {
		x := slots[i]
		x.doubt, x.sent = &changes[i], sent
		if s.later(x); o.Err == nil {
			s.settled(x, o.Record)
		}
	}
}

// founds reports whether this process may still take what is missing at once: the plan does
// not become settled before it has announced that it is whole.
func (s *sitting) founds() bool {
	p, id := s.follower.current()
	return s.leaving == 0 && p != nil && p.founding && id == s.planID && len(s.mine) > 0
}

// rewritten notes that a write has changed the record of a lease.
func (s *sitting) rewritten(x *slot, r backends.Record) {
	s.see(x.partition, r)
	sent := x.sent
	x.record, x.doubt = r, nil
	x.lease.won.Store(&r)
	x.lease.audited.Store(&sent)
	if s.auditLater(x); rule.Unconfirmed(r) {
		x.next = s.group.now()
	}
}

// contradicted ends a lease whose record shows something else.
func (s *sitting) contradicted(x *slot, r backends.Record) {
	err := fmt.Errorf("%w: its record was changed: holder %.80q, token %d", elector.ErrLost, r.Holder, r.Token)
	s.group.log.Error("elector: a partition was taken away from its owner", "partition", x.partition, "token", x.lease.Token(), "error", err)
	info := s.over(x, lost, "lost", err)
	x.next = s.group.now() + s.group.options.ReleaseTimeout // for its worker
	s.group.traceEnded(info)
}
