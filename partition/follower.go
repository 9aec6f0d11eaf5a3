package partition

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// deputies is how many members watch all seats.
const deputies = 3

// A follower reads the plan and the seats while this process has a seat. How it reads is in
// reads.go, what it does about them in govern.go. Its goroutine owns it, but for what the
// mutex guards.
type follower struct {
	s     *sitting
	group *Group
	planReads
	seatReads
	governing
	commission
	published note
	said      map[string]string // logged last about what does not work
	woken     chan struct{}
}

// planReads are what reads of the plan have shown, and when to read it next.
type planReads struct {
	planAt  time.Duration   // when to read the plan next
	record  backends.Record // of the plan
	read    bool            // it was read
	trouble error           // why the plan cannot be used
	seen    time.Duration   // when the present plan was seen first
	drained []string        // IDs of members that the plan counts no more
}

// seatReads are when and which seats are read, and how that went.
type seatReads struct {
	seatsAt time.Duration // when to read seats next
	all     bool          // all seats are to be read
	counted time.Duration // when the latest read of all seats was sent, 0 for never
	sight   time.Duration // its answer
	failing bool          // the latest read of seats has failed
	steady  time.Duration // since when reads of seats work without a gap
	latest  time.Duration // read of seats
	every   time.Duration // how often they are read
	seats   []int         // that were read then
	mends   time.Duration // from when to read all seats, as members are gone; 0 for never
	foreign map[int]bool  // those whose record is not of this library
	top     int           // highest seat known
	beyond  bool          // a partition names a seat that no read of all seats had come to
}

// governing is what decides when a plan is written, and which.
type governing struct {
	members map[int]int   // weights of the ready members, by seat
	changed time.Duration // when they changed last
	pending time.Duration // since when the plan does not fit them, 0 if it does
	pause   time.Duration // no plan is written before
}

// A commission is what a follower and other goroutines tell each other.
type commission struct {
	mutex sync.Mutex
	report
	push *backends.Record // that Watch has shown last; nil if that was taken
	wish note             // that others set: leaving and whole

	// The highest seat that a partition names which waits for its holder's end, and when one did
	// so last. It may lie beyond a seat whose record was deleted, where reads of all seats end:
	// then this member reads it too, to replace its holder.
	named int
	asked time.Duration
}

// A report is what a follower has found out.
type report struct {
	plan    *plan  // nil if none can be used
	id      string // of the plan: its record's nonce
	live    bool   // Watch shows changes of the plan, as soon as it is written
	alone   bool   // no other member is ready
	refused error  // why this process may not be a member, nil if it may
}

func newFollower(s *sitting) *follower {
	now, every := s.group.now(), s.group.options.RenewEvery
	return &follower{
		s: s, group: s.group, said: map[string]string{}, woken: make(chan struct{}, 1),
		planReads: planReads{planAt: now},
		seatReads: seatReads{seatsAt: now, all: true, steady: now, latest: now, every: every, foreign: map[int]bool{}},
	}
}

// reported returns what the follower has found out.
func (f *follower) reported() report {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.report
}

// tell changes what other goroutines tell the follower, and wakes it if there is something new.
func (f *follower) tell(change func(c *commission)) {
	f.mutex.Lock()
	wish, named := f.wish, f.named
	change(&f.commission)
	news := f.push != nil || f.wish != wish || f.named > named
	f.mutex.Unlock()
	if news {
		wake(f.woken)
	}
}

func (f *follower) snapshot(seat int) rule.Snapshot { return f.group.seat(seat).View.Snapshot() }

// rank returns how many members come before this one in the plan, at most so many, and
// whether it is in the plan itself. Without a plan the seats' numbers count.
func (f *follower) rank(most int) (before int, planned bool) {
	if f.group.known == nil {
		for seat := range f.members {
			if seat < f.s.own.Seat && before < most {
				before++
			}
		}
		return before, false
	}
	for _, at := range f.group.known.positions {
		switch {
		case at.seat == noSeat:
		case at.seat == f.s.own.Seat:
			return before, true
		case before < most && !f.snapshot(at.seat).Record.Vacant():
			before++
		}
	}
	return before, false
}

// many reports whether the store reads many names in a request.
func (f *follower) many() bool { return f.group.backend.Describe().MaxLoads > 1 }

// complain logs why something does not work, once until it works again; err is nil then.
func (f *follower) complain(what string, err error) {
	if err == nil {
		delete(f.said, what)
	} else if text := err.Error(); text != f.said[what] {
		f.said[what] = text
		f.group.log.Log(context.Background(), levelOf(err), "elector: this member of the group "+what, "error", err)
	}
}
