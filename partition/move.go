package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// A slot is a partition that this process owns, takes or gives up.
//
//	wanted ──▶ held ──the plan moves it──▶ draining ──the worker returned──▶ ended ──▶ told ──▶ no slot
//	   ▲        │                             │                                ▲       ▲ │
//	   │        │                             └──ReleaseTimeout, then C────────┘       │ │
//	   │        └──the record changed──▶ lost ──the worker returned, ReleaseTimeout────┘ │
//	   └────────────────────────────────the plan gives it back───────────────────────────┘
//
// A write whose outcome is unknown is repeated before anything else: see doubt.
type slot struct {
	partition int
	state     state
	record    backends.Record // as the store last showed it; ours from held on
	doubt     *backends.Change
	sent      clock.Reading // of the doubtful write
	lease     *Lease
	since     time.Duration // in this state
	owned     time.Duration // wanted: when the latest read was sent at which another process might own it, 0 if none
	next      time.Duration // when to do something
	until     time.Duration // draining: when the worker must have returned; ended: when to make the record vacant
	tries     int
	foreign   bool   // the record is not of this library
	owes      bool   // a read must still show that it is another's: see told
	said      string // why it cannot be taken, logged last
}

type state uint8

const (
	wanted   state = iota
	held           // by a valid lease, as far as this process knows
	draining       // the lease is valid, and its worker was told to stop
	ended          // the lease is over, and the record is to become vacant
	told           // it was vacant, or another's; a later read must show another's
	lost           // the record is another's; the worker has not returned
)

// most is how many partitions a process moves at the same time.
const most = 300

// adopt makes the slots follow the latest plan.
func (s *sitting) adopt() {
	g := s.group
	now := g.now()
	if p, id := s.follower.current(); p != nil && p != s.plan {
		s.plan, s.planID, s.mine = p, id, map[int]bool{}
		for partition, seat := range p.table() {
			if seat == s.own.Seat {
				s.mine[partition] = true
			}
		}
		s.forget()
		g.tracePlanned(s.ctx, len(s.mine))
	}
	planned := s.planned()
	if planned && s.leaving == 0 && s.added != s.plan {
		s.added = s.plan
		first := now
		if !s.plan.founding { // their owners must see the plan too
			first += g.options.RenewEvery / 32
		}
		for partition := range s.mine {
			if x := s.slots[partition]; x == nil || x.state == told {
				s.slots[partition] = &slot{partition: partition, since: now, next: first, owes: x != nil}
			}
		}
	}
	moving := 0
	for _, x := range s.slots {
		if x.state == draining && now-x.since < g.options.RenewEvery {
			moving++
		}
	}
	for partition, x := range s.slots {
		switch mine := planned && s.mine[partition]; {
		case x.state == wanted && x.doubt == nil && (!mine || s.leaving != 0):
			if delete(s.slots, partition); x.owes {
				s.slots[partition] = &slot{partition: partition, state: told, since: now, next: now + s.auditEvery()}
			}
		case x.state == held && x.doubt == nil && !mine && (moving < most || s.leaving != 0):
			moving++
			audit := x.next
			x.enter(draining, now)
			x.until = s.deadline(now)
			x.next = min(audit, x.until)
			x.lease.stop("the partition moves to another member of the group")
		}
	}
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

func (x *slot) enter(to state, now time.Duration) {
	x.state, x.since, x.next, x.tries = to, now, now, 0
}

// step does what is due, and returns when to do more.
func (s *sitting) step(ctx context.Context) (next time.Duration) {
	g := s.group
	s.reap()
	now := g.now()
	requests, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if s.leaving == 0 { // so that requests without an answer do not hold up that it leaves
		defer context.AfterFunc(ctx, cancel)()
		defer context.AfterFunc(s.lease.Context(), cancel)()
	} else {
		defer g.clock.AfterFunc(max(0, s.leaving+g.options.ReleaseTimeout-now), cancel)()
	}
	var doubtful, vacate, take, confirm, audit []*slot
	for _, x := range s.slots {
		if x.state == held && x.lease.valid() != nil { // not audited in time
			x.enter(draining, now)
			x.until = s.deadline(now)
		}
		switch {
		case x.state == draining && now >= x.until:
			g.log.Error("elector: a worker has not returned in time; its lease on the partition is over", "partition", x.partition, "token", x.lease.Token(), "timeout", g.options.ReleaseTimeout)
			info := s.over(x, ended, "timeout", fmt.Errorf("%w: the worker did not return within %v of being told to stop", elector.ErrLost, g.options.ReleaseTimeout))
			x.until = now + g.challenge()
			x.next = x.until
			g.traceEnded(info)
		case x.next > now:
		case x.doubt != nil:
			doubtful = append(doubtful, x)
		case x.state == wanted:
			take = append(take, x)
		case x.state == draining && x.lease.valid() != nil:
			x.next = x.until
		case (x.state == held || x.state == draining) && rule.Unconfirmed(x.record):
			confirm = append(confirm, x)
		case x.state == held, x.state == draining, x.state == told:
			audit = append(audit, x)
		case x.state == lost:
			s.gone(x, backends.Record{})
		case x.state == ended:
			vacate = append(vacate, x)
		}
	}
	s.settle(requests, some(doubtful))
	s.vacate(requests, some(vacate))
	s.take(requests, some(take))
	s.confirm(requests, some(confirm))
	s.audit(requests, some(audit))
	s.announceWhole()
	next = g.now() + g.options.RenewEvery
	if s.calls.Load() == 0 { // no worker can call Check
		s.lease.Check()
		if stall := g.options.StallTimeout; stall > 0 {
			next = min(next, g.now()+stall/2)
		}
	}
	for _, x := range s.slots {
		next = min(next, x.next)
	}
	return next
}

// some returns the slots that have waited longest, at most as many as move together.
func some(slots []*slot) []*slot {
	slices.SortFunc(slots, func(a, b *slot) int {
		if a.next != b.next {
			return int(max(-1, min(1, a.next-b.next)))
		}
		return a.partition - b.partition
	})
	return slots[:min(len(slots), most)]
}

// reap notes the workers that have returned.
func (s *sitting) reap() {
	s.mutex.Lock()
	returned := s.returned
	s.returned = nil
	s.mutex.Unlock()
	for _, x := range returned {
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
			s.gone(x, backends.Record{})
		}
	}
}

// start calls the worker of a slot, after a pause.
func (s *sitting) start(x *slot, pause time.Duration) {
	l := x.lease
	s.running.Add(1)
	s.workers.Go(func() {
		defer func() {
			s.running.Add(-1)
			s.mutex.Lock()
			s.returned = append(s.returned, x)
			s.mutex.Unlock()
			wake(s.woken)
		}()
		s.group.wait(l.ctx, s.group.now()+pause, nil)
		s.work(l)
	})
}

// later sets when to try again: soon at first, then once in a quarter of an interval.
func (s *sitting) later(x *slot) {
	every := s.group.options.RenewEvery
	x.next = s.group.now() + min(every/4, every/32<<min(x.tries, 16))
	x.tries++
}

// load reads the records of some slots, and others.
func (s *sitting) load(ctx context.Context, slots []*slot, others ...string) []backends.Outcome {
	names := make([]string, len(slots), len(slots)+len(others))
	for i, x := range slots {
		names[i] = s.group.record(x.partition)
	}
	names = append(names, others...)
	outcomes := s.group.requests.LoadAll(ctx, names)
	for i, x := range slots {
		if outcomes[i].Err == nil {
			s.see(x.partition, outcomes[i].Record)
		}
	}
	return outcomes
}

// see enters what a partition's record shows. Views that are further apart than a quarter
// of A do not show what was between.
func (s *sitting) see(partition int, r backends.Record) {
	g := s.group
	g.trails[partition].See(r, g.now(), time.Duration(g.audit.Load())/4)
}

// take takes partitions that are free.
func (s *sitting) take(ctx context.Context, slots []*slot) {
	if len(slots) == 0 {
		return
	}
	g := s.group
	p, _ := s.follower.current()
	if p == nil {
		for _, x := range slots {
			s.later(x)
		}
		return
	}
	read := g.now()
	asked := s.living(slots) // as seen before
	outcomes, unread := s.loadWith(ctx, slots, asked)
	var there []*slot
	for i, o := range outcomes {
		x := slots[i]
		x.foreign = isForeign(o.Err)
		if o.Err != nil {
			s.cannot(x, o.Err)
			continue
		}
		x.record = o.Record
		there = append(there, x)
	}
	asks := s.living(there)
	maps.DeleteFunc(asks, func(partition int, in rule.Incarnation) bool { return asked[partition] == in })
	if len(asks) > 0 {
		_, also := s.loadWith(ctx, nil, asks)
		maps.Copy(unread, also)
	}
	var changes []backends.Change
	var claimed []*slot
	sent := clock.Mark(g.clock)
	for _, x := range there {
		now := g.now()
		trail := &g.trails[x.partition]
		at, err := trail.Free(x.record, s.seats, s.own, p.founding, p.audit, now)
		switch {
		case err != nil:
			s.cannot(x, fmt.Errorf("record %s: %w", g.record(x.partition), err))
			continue
		case at > now:
			x.owned = read
			s.later(x)
			if at != rule.Never {
				x.next = min(at, now+g.options.RenewEvery)
			}
			if err := unread[x.partition]; err != nil {
				s.cannot(x, err)
			} else if now-x.since > g.challenge()+2*g.options.RenewEvery {
				s.cannot(x, errors.New(g.waits(x)))
			}
			continue
		}
		token := trail.Token(x.record, uint64(g.options.MinToken), sent.Wall)
		if token == 0 {
			s.cannot(x, elector.ErrTokenExhausted)
			continue
		}
		next := backends.Record{Holder: g.options.ID, Token: token, TTL: g.options.TTL, RenewEvery: g.options.RenewEvery, Attempt: backends.Attempt{Nonce: g.newNonce(), Sequence: 1}}
		next.Extensions, _ = x.record.Extensions.Class('k').With(rule.SeatName, s.own.String())
		if !x.record.Exists() {
			next.Extensions = rule.Created(next.Extensions)
		}
		changes = append(changes, backends.Change{Name: g.record(x.partition), Prev: x.record, Next: next})
		claimed = append(claimed, x)
	}
	if len(claimed) == 0 { // their owners give them up; so it is with the rest
		for _, x := range s.slots {
			if x.state == wanted && x.tries == 0 {
				s.later(x)
			}
		}
	}
	for i, o := range s.swap(ctx, changes) {
		x := claimed[i]
		switch {
		case o.Err == nil:
			s.taken(x, o.Record, sent)
		default:
			x.doubt, x.sent = &changes[i], sent
			if s.later(x); isRefused(o.Err) {
				x.next = g.now() // a refusal may be of a second try: see what is there
			}
		}
	}
}

// waits describes what a partition waits for that cannot be taken yet.
func (g *Group) waits(x *slot) string {
	if !x.record.Exists() {
		return fmt.Sprintf("record %s is missing; it is taken after %v, unless its owner writes it again", g.record(x.partition), rule.Challenge(time.Duration(g.audit.Load()), g.drift))
	}
	return fmt.Sprintf("record %s names %q, which may still own it, with token %d", g.record(x.partition), x.record.Holder, x.record.Token)
}

// living returns the incarnations through which partitions were held when they were seen
// last, by partition, unless they are over or this process's own.
func (s *sitting) living(slots []*slot) map[int]rule.Incarnation {
	asks := map[int]rule.Incarnation{}
	for _, x := range slots {
		in, err := rule.Holder(x.record)
		if err == nil && in != s.own && in.Seat < maxSeats && !x.record.Vacant() && s.seats.Over(in, x.record.TTL, 0) != 0 {
			asks[x.partition] = in
		}
	}
	return asks
}

// loadWith reads the records of some slots, and the seats of incarnations that partitions
// were seen to name before. It returns why a seat cannot be read, by partition.
func (s *sitting) loadWith(ctx context.Context, slots []*slot, asked map[int]rule.Incarnation) (records []backends.Outcome, unread map[int]error) {
	g := s.group
	var seats []int
	for _, in := range asked {
		seats = append(seats, in.Seat)
	}
	slices.Sort(seats)
	seats = slices.Compact(seats)
	names := make([]string, len(seats))
	for i, seat := range seats {
		names[i] = g.seatName(seat)
	}
	sent := g.now()
	outcomes := s.load(ctx, slots, names...)
	now := g.now()
	unread = map[int]error{}
	seen := map[rule.Incarnation]bool{}
	for partition, in := range asked {
		i, _ := slices.BinarySearch(seats, in.Seat)
		switch o := outcomes[len(slots)+i]; {
		case o.Err != nil:
			unread[partition] = o.Err
		case !seen[in]:
			seen[in] = true
			s.seats.See(in, o.Record, sent, now)
			if !o.Record.Vacant() { // otherwise no holder is to be replaced, and the number may be anything
				s.follower.names(in.Seat)
			}
		}
	}
	return outcomes[:len(slots)], unread
}

// swap makes changes together.
func (s *sitting) swap(ctx context.Context, changes []backends.Change) []backends.Outcome {
	if len(changes) == 0 {
		return nil
	}
	return s.group.requests.SwapAll(ctx, changes)
}

// taken begins a lease.
func (s *sitting) taken(x *slot, won backends.Record, sent clock.Reading) {
	g := s.group
	s.see(x.partition, won)
	x.record, x.doubt, x.said = won, nil, ""
	l := &Lease{group: g, seat: s.lease, partition: x.partition}
	l.won.Store(&won)
	l.ctx, l.cancel = context.WithCancelCause(s.ctx)
	l.audited.Store(&sent)
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

// auditEvery is how often an owner reads a record back: twice in Hold(A), and some.
func (s *sitting) auditEvery() time.Duration {
	return time.Duration(s.group.audit.Load()) * 2 / 5
}

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

// settled ends a doubt: the record shows r.
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
	case applied && (!rule.Unconfirmed(r) || s.founds()):
		s.taken(x, r, x.sent)
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

// auditLater sets when to read the record of a lease next.
func (s *sitting) auditLater(x *slot) {
	x.next, x.tries = s.group.now()+s.auditEvery(), 0
	if x.state == draining {
		x.next = min(x.next, x.until)
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

// cannot logs why a partition cannot be taken, once.
func (s *sitting) cannot(x *slot, err error) {
	if text := err.Error(); text != x.said {
		x.said = text
		s.group.log.Warn("elector: a partition that this process should own cannot be taken", "partition", x.partition, "error", err)
	}
	s.later(x)
}

// announceWhole announces, while the plan is founding, that all partitions of this process
// have a record.
func (s *sitting) announceWhole() {
	p, id := s.follower.current()
	if p == nil || !p.founding || id != s.planID {
		return
	}
	for _, x := range s.slots {
		if x.state != told && (!x.record.Exists() || rule.Unconfirmed(x.record)) && !x.foreign {
			return
		}
	}
	s.follower.announce(func(n *note) { n.whole = id })
}
