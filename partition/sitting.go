package partition

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// A sitting is the time for which this process holds one incarnation of a seat. The
// goroutine of Run owns it.
type sitting struct {
	group    *Group
	worker   Work
	seat     *seat
	lease    *elector.Lease
	own      rule.Incarnation
	follower *follower
	seats    *rule.Seats
	slots    map[int]*slot
	adopted
	leaving time.Duration // since when, 0 if it does not leave
	woken   chan struct{}
	ctx     context.Context // of the workers: ends with the seat's lease, not when that drains
	end     context.CancelCauseFunc
	running atomic.Int64 // goroutines of workers
}

// adopted is the plan that a sitting has adopted.
type adopted struct {
	plan  *plan // that the slots follow
	table []int // of the plan
	share int   // how many partitions it gives to this seat
}

// mine reports whether the plan gives a partition to this seat.
func (s *sitting) mine(partition int) bool { return s.table[partition] == s.own.Seat }

// deadline is when a worker must have returned that is told to stop now.
func (s *sitting) deadline(now time.Duration) time.Duration {
	if s.leaving != 0 {
		now = min(now, s.leaving)
	}
	return now + s.group.options.ReleaseTimeout
}

// idle reports whether this process owns, takes and gives up nothing.
func (s *sitting) idle() bool {
	for _, x := range s.slots {
		if x.state != told {
			return false
		}
	}
	return true
}

// planned reports whether this process should own partitions.
func (s *sitting) planned() bool {
	g, r := s.group, s.follower.reported()
	if s.leaving != 0 && (r.refused != nil || r.alone || g.now()-s.leaving > g.options.ReleaseTimeout/2) {
		return false
	}
	return s.share > 0
}

// later sets when to try again: soon at first, then once in a quarter of an interval.
func (s *sitting) later(x *slot) {
	every := s.group.options.RenewEvery
	x.next = s.group.now() + min(every/4, every/32<<min(x.tries, 16))
	x.tries++
}

// auditEvery is how often an owner reads a record back: twice in Hold(A), and some.
func (s *sitting) auditEvery() time.Duration {
	return time.Duration(s.group.audit.Load()) * 2 / 5
}

// auditLater sets when to read the record of a lease next.
func (s *sitting) auditLater(x *slot) {
	x.next, x.tries = s.group.now()+s.auditEvery(), 0
	if x.state == draining {
		x.next = min(x.next, x.until)
	}
}

// load reads the records of some slots, and others.
func (s *sitting) load(ctx context.Context, slots []*slot, others ...string) []backends.Outcome {
	names := make([]string, len(slots), len(slots)+len(others))
	for i, x := range slots {
		names[i] = s.group.record(x.partition)
	}
	names = append(names, others...)
	outcomes := s.group.requests.LoadAll(ctx, names, s.group.options.RequestTimeout)
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
	g.trail(partition).See(r, g.now(), time.Duration(g.audit.Load())/4)
}

// over ends the lease of a slot, unless it has ended, and returns what to trace of it.
func (s *sitting) over(x *slot, to state, cause string, err error) LeaseInfo {
	info, now := s.group.info(x.lease), s.group.now()
	if x.state == draining {
		info.Drain = now - x.since
	}
	if info.Cause = cause; x.lease.Remaining() == 0 {
		info.Cause, err = "lost", x.lease.ended()
	}
	x.lease.end(err)
	x.enter(to, now)
	info.Err = x.lease.over.Load().err
	return info
}

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
	unsure
	lease   *Lease
	since   time.Duration // in this state
	owned   time.Duration // wanted: when the latest read was sent at which another process might own it, 0 if none
	next    time.Duration // when to do something
	until   time.Duration // draining: when the worker must have returned; ended: when to make the record vacant
	tries   int
	yields  yields // held: to whom the plan gives it instead
	foreign bool   // the record is not of this library
	owes    bool   // a read must still show that it is another's: see told
	said    string // why it cannot be taken, logged last
	workerState
}

// An unsure slot has a write that is to be sent, or whose outcome is unknown.
type unsure struct {
	doubt *backends.Change // nil if there is none
	sent  bool             // it was sent before
}

// A workerState is what is known of the worker of a slot.
type workerState struct {
	returned atomic.Bool   // its goroutine has ended
	stalls   time.Duration // since when it looks as if it hung, by its latest sign
	looked   time.Duration // when that was seen first
}

// A yields is how the plan gives a partition to another seat, which may not know it yet.
type yields struct {
	seat  int           // of the taker
	since time.Duration // when the plan was seen, 0 if it gives the partition to this process
	first time.Duration // when the first plan was seen that does not
	at    time.Duration // when to tell the worker to stop
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

// leased reports whether the slot has a lease that was not ended.
func (x *slot) leased() bool { return x.state == held || x.state == draining }

// gaveUp reports whether the partition was given up, and no other owner was seen.
func (x *slot) gaveUp() bool { return x.state == ended || x.state == told }

func (x *slot) enter(to state, now time.Duration) {
	x.state, x.since, x.next, x.tries = to, now, now, 0
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
