package partition

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
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
