package partition

import (
	"context"
	"fmt"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// A sitting reads and writes the records of its slots here. Each write is in doubt until an
// answer, or a read that was sent later, shows what became of it.

// intend prepares a write of a slot's record.
func (s *sitting) intend(x *slot, prev, next backends.Record) {
	x.doubt, x.sent = &backends.Change{Name: s.group.record(x.partition), Prev: prev, Next: next}, false
}

// intendNext prepares the write that follows the own record of a slot: it makes that vacant if
// the partition was given up, and confirms it otherwise.
func (s *sitting) intendNext(x *slot) {
	next := x.record
	next.Attempt.Sequence++
	next.Extensions = next.Extensions.Without(rule.NewName)
	if x.state == ended {
		next.Holder, next.Value = "", ""
	}
	s.intend(x, x.record, next)
}

// write sends the writes of some slots together, for the first time or once more.
func (s *sitting) write(ctx context.Context, slots []*slot) {
	if len(slots) == 0 {
		return
	}
	g := s.group
	var changes []backends.Change
	for _, x := range slots {
		changes = append(changes, *x.doubt)
	}
	sent := clock.Mark(g.clock)
	for i, o := range g.requests.SwapAll(ctx, changes, g.options.RequestTimeout) {
		x := slots[i]
		again := x.sent
		x.sent = true
		switch {
		case o.Err == nil:
			s.see(x.partition, o.Record)
			s.settled(x, o.Record, &sent, again)
		case again && x.state == wanted && !isRefused(o.Err):
			s.cannot(x, o.Err)
		default: // also if it was refused again: the read before has shown no reason
			if s.later(x); !again && isRefused(o.Err) {
				x.next = g.now() // a refusal may be of a second try: see what is there
			}
		}
	}
}

// check reads the records of some slots: what became of their writes, and whether partitions
// are still this process's, or still not. A read that shows the state with which a write in
// doubt compares is followed by the same write.
func (s *sitting) check(ctx context.Context, slots []*slot) {
	if len(slots) == 0 {
		return
	}
	sent := clock.Mark(s.group.clock)
	var writes []*slot
	for i, o := range s.load(ctx, slots) {
		x, r := slots[i], o.Record
		switch {
		case x.gaveUp() && isForeign(o.Err): // there is nothing to make vacant
			s.gone(x)
		case o.Err != nil && x.doubt != nil:
			s.cannot(x, o.Err)
		case o.Err != nil:
			s.later(x)
		case x.doubt != nil && r.Version == x.doubt.Prev.Version:
			writes = append(writes, x)
		case x.doubt != nil, x.gaveUp():
			s.settled(x, r, &sent, true)
		case r.Attempt == x.record.Attempt && r.Token == x.record.Token && r.Holder == x.record.Holder && r.Extensions.Class('c') == x.record.Extensions.Class('c'):
			s.audited(x, r, &sent)
		case !r.Exists() && x.lease.Remaining() > 0:
			s.group.log.Warn("elector: the record of a partition was deleted; its owner writes it again", "partition", x.partition, "token", x.lease.Token())
			next := x.record
			next.Attempt.Sequence++
			next.Extensions = rule.Created(next.Extensions)
			s.intend(x, r, next)
			writes = append(writes, x)
		default:
			s.contradicted(x, r)
		}
	}
	s.write(ctx, writes)
}

// settled ends a doubt, or the wait for another owner: a request that was sent then has shown
// that the record is r. A creation that was sent again, or that a read has shown, is not
// believed, as other owners may have come since it was sent, and their records gone: it is
// replaced, with a token of now.
func (s *sitting) settled(x *slot, r backends.Record, sent *clock.Reading, again bool) {
	now := s.group.now()
	applied := x.doubt != nil && r.Attempt == x.doubt.Next.Attempt
	in, err := rule.Holder(r)
	named := err == nil && !r.Vacant() // the record is held through in
	x.doubt = nil
	switch {
	case x.gaveUp() && named && in == s.own && !rule.Unconfirmed(r): // it was written again, or its release lost
		x.record = r
		x.enter(ended, now)
		x.next = max(x.until, now)
	case x.state == told && named && in != s.own:
		delete(s.slots, x.partition)
	case x.gaveUp(): // it may show this incarnation yet
		s.gone(x)
	case x.leased() && applied && x.lease.valid() == nil:
		x.lease.won.Store(&r)
		s.audited(x, r, sent)
	case x.leased() && applied && !rule.Unconfirmed(r): // too late
		x.record, x.next = r, now
	case x.leased():
		s.contradicted(x, r)
	case applied && (!again || !rule.Unconfirmed(r)):
		s.taken(x, r, sent)
	case applied && s.founds() && !s.mine(x.partition): // its new owner need not wait for A
		x.record = r
		x.enter(ended, now)
	default:
		s.later(x)
	}
}

// gone notes that a partition was given up, or taken away. The store may lose that, as in a
// failover, and a hand can put the record back: then it names this living incarnation, and
// no other process takes it. So it is read at the times of audits until another
// process has it.
func (s *sitting) gone(x *slot) {
	x.doubt = nil
	x.enter(told, s.group.now())
	x.next = s.group.now() + s.auditEvery()
	wake(s.woken) // the plan may give it back
}

// founding reports whether the plan that the slots follow is founding, and is still the
// group's, and returns its name.
func (s *sitting) founding() (id string, is bool) {
	r := s.follower.reported()
	return r.id, r.plan != nil && r.plan == s.plan && r.plan.founding
}

// founds reports whether this process may still take what is missing at once: the plan does
// not become settled before it has announced that it is whole.
func (s *sitting) founds() bool {
	_, founding := s.founding()
	return founding && s.leaving == 0 && s.share > 0
}

// audited notes that a request that was sent then has shown the record of a lease. One that is
// not confirmed shows little, and is confirmed at once.
func (s *sitting) audited(x *slot, r backends.Record, sent *clock.Reading) {
	x.record = r
	if s.auditLater(x); rule.Unconfirmed(r) {
		x.next = s.group.now()
	} else {
		x.lease.audited.Store(sent)
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

// taken begins a lease.
func (s *sitting) taken(x *slot, won backends.Record, sent *clock.Reading) {
	g := s.group
	x.record, x.said = won, ""
	l := &Lease{group: g, seat: s.lease, partition: x.partition}
	l.won.Store(&won)
	l.ctx, l.cancel = context.WithCancelCause(s.ctx)
	l.audited.Store(sent)
	x.lease = l
	info := g.info(l)
	info.Unowned = g.now() - max(x.since, x.owned)
	x.enter(held, g.now())
	if s.auditLater(x); rule.Unconfirmed(won) {
		x.next = g.now()
	}
	g.log.Debug("elector: this process owns a partition", "partition", x.partition, "token", won.Token)
	traced(g, g.o.Trace.Acquired, l.ctx, info)
	s.start(x, 0)
}

// cannot logs why a partition cannot be taken, once.
func (s *sitting) cannot(x *slot, err error) {
	if text := err.Error(); text != x.said {
		x.said = text
		s.group.log.Warn("elector: a partition that this process should own cannot be taken", "partition", x.partition, "error", err)
	}
	s.later(x)
}
