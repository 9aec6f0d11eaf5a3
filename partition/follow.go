package partition

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// deputies is how many members watch all seats.
const deputies = 3

// A follower reads the plan and the seats while this process has a seat. What it does
// about them is in govern.go. Its goroutine owns it, but for what the mutex guards.
type follower struct {
	s     *sitting
	group *Group

	record  backends.Record // of the plan
	read    bool            // it was read
	text    string          // of the plan
	trouble error           // why the plan cannot be used

	planAt  time.Duration // when to read the plan next
	seatsAt time.Duration // when to read seats next
	all     bool          // all seats are to be read
	counted time.Duration // when the latest read of all seats was sent, 0 for never
	sight   time.Duration // its answer
	failing bool          // the latest read of seats has failed
	seen    time.Duration // when the present plan was seen first
	steady  time.Duration // since when reads of seats work without a gap
	latest  time.Duration // read of seats
	every   time.Duration // how often they are read
	seats   []int         // that were read then
	mends   time.Duration // from when to read all seats, as members are gone; 0 for never
	foreign map[int]bool  // those whose record is not of this library
	top     int           // highest seat known
	beyond  bool          // a partition names a seat that no read of all seats had come to

	drained   []string // IDs of members that the plan counts no more
	published note
	members   map[int]int       // weights of the ready members, by seat
	changed   time.Duration     // when they changed last
	pending   time.Duration     // since when the plan does not fit them, 0 if it does
	pause     time.Duration     // no plan is written before
	said      map[string]string // logged last about what does not work

	woken chan struct{}
	mutex sync.Mutex
	live  bool             // Watch shows changes of the plan
	push  *backends.Record // that it has shown last; nil if that was taken
	wish  note             // that others set: leaving and whole
	named int              // highest seat that a partition names which waits for its holder's end
	asked time.Duration    // when one did so last
	alone bool             // no other member is ready
	plan  *plan
	id    string // of the plan: its record's nonce
}

func newFollower(s *sitting) *follower {
	now := s.group.now()
	return &follower{s: s, group: s.group, foreign: map[int]bool{}, said: map[string]string{}, woken: make(chan struct{}, 1), planAt: now, seatsAt: now, all: true, steady: now, latest: now, every: s.group.options.RenewEvery}
}

// current returns the plan, nil if none can be used, and its name.
func (f *follower) current() (p *plan, id string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.plan, f.id
}

// announce changes what this member publishes.
func (f *follower) announce(change func(n *note)) {
	f.mutex.Lock()
	before := f.wish
	change(&f.wish)
	changed := f.wish != before
	f.mutex.Unlock()
	if changed {
		wake(f.woken)
	}
}

// names notes that partitions name a seat that is held. It may lie beyond one whose record was
// deleted, where reads of all seats end: then this member reads it too, to replace its holder.
func (f *follower) names(seat int) {
	f.mutex.Lock()
	more := seat > f.named
	f.named, f.asked = max(f.named, seat), f.group.now()
	f.mutex.Unlock()
	if more {
		wake(f.woken)
	}
}

// reach makes reads of all seats come to those that partitions name, as long as these wait.
func (f *follower) reach() {
	now := f.group.now()
	f.mutex.Lock()
	waits := now-f.asked <= 2*f.group.challenge()
	if !waits {
		f.named = 0
	}
	named := f.named
	f.mutex.Unlock()
	switch {
	case named > f.top:
		f.top, f.beyond, f.seatsAt = named, true, now
	case f.beyond && !waits:
		f.beyond, f.top = false, f.s.seat.number
		if p := f.group.known; p != nil {
			for _, at := range p.positions {
				f.top = max(f.top, at.seat)
			}
		}
	}
}

// isAlone reports whether no other member is ready.
func (f *follower) isAlone() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.alone
}

// pushes reports whether the store shows a new plan as soon as it is written.
func (f *follower) pushes() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.live
}

// wake lets a goroutine look again that waits for the channel, which holds one value.
func wake(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default:
	}
}

// follow runs until ctx ends.
func (f *follower) follow(ctx context.Context) {
	g := f.group
	for ctx.Err() == nil {
		f.reach()
		if all := f.watchesAll(); all && !f.all {
			f.all, f.seatsAt = true, g.now()
		} else {
			f.all = all
		}
		pushed := f.pushed()
		switch now := g.now(); {
		case f.seatsAt <= now:
			f.readSeats(ctx)
		case f.planAt <= now:
			f.readPlan(ctx)
		}
		f.publish(ctx)
		f.govern(ctx)
		next := min(f.seatsAt, f.planAt, f.nextFree())
		if due := f.due(); due != 0 {
			next = min(next, due)
		}
		if !pushed {
			g.wait(ctx, next, f.woken)
		}
	}
}

// wait blocks until a time, and returns true; or until it is woken or ctx ends.
func (g *Group) wait(ctx context.Context, until time.Duration, woken chan struct{}) bool {
	d := until - g.now()
	if d <= 0 {
		return true
	}
	due := make(chan struct{})
	defer g.clock.AfterFunc(d, func() { close(due) })()
	select {
	case <-due:
		return true
	case <-woken:
	case <-ctx.Done():
	}
	return false
}

// watch passes the plan on when it changes, as far as the store reports that, until ctx
// ends.
func (f *follower) watch(ctx context.Context, b backends.Watcher) {
	f.group.watchPlan(ctx, b, func(r *backends.Record) {
		f.mutex.Lock()
		if r == nil {
			r = &backends.Record{} // older than any: it is read
			f.live = false
		} else {
			f.live = true
		}
		f.push = r
		f.mutex.Unlock()
		wake(f.woken)
	})
}

// pushed takes the plan that Watch has shown last, or has it read, and reports whether there
// was one.
func (f *follower) pushed() bool {
	f.mutex.Lock()
	r := f.push
	f.push = nil
	f.mutex.Unlock()
	switch {
	case r == nil:
		return false
	case r.Token < f.record.Token || !r.Exists(): // it may be late
		f.planAt = 0
		return true
	}
	f.takePlan(backends.Outcome{Record: *r})
	return true
}

// challenge is C of this process.
func (g *Group) challenge() time.Duration { return rule.Challenge(g.options.TTL, g.drift) }

// readPlan reads the plan.
func (f *follower) readPlan(ctx context.Context) {
	f.load(ctx, nil)
}

// readSeats reads the plan, and all seats or those that follow in the plan.
func (f *follower) readSeats(ctx context.Context) {
	g := f.group
	now := g.now()
	var seats []int
	if now-f.latest > 2*f.every {
		f.steady = now // there was a gap
	}
	f.every = f.interval()
	if f.all {
		for i := range f.top + 2 {
			seats = append(seats, i)
		}
	} else {
		seats = f.following()
	}
	f.latest, f.seatsAt, f.seats = now, now+f.every, seats
	f.failing = !f.load(ctx, seats)
	if f.failing {
		f.steady = g.now()
		f.seatsAt = min(f.seatsAt, f.steady+g.options.RenewEvery)
		return
	}
	if f.all {
		f.count()
		f.counted, f.sight = now, g.now()
	} else {
		for _, i := range seats { // its holder may have renewed until then
			if free := f.snapshot(i).Free; free > g.now() {
				f.seatsAt = min(f.seatsAt, free)
			}
		}
	}
	f.mourn()
}

// interval is how often this member reads seats: a deputy less often, the further back it is in
// the plan; another member in the request that reads the plan, if that takes many names.
func (f *follower) interval() time.Duration {
	before, planned := f.rank(deputies)
	switch every := f.group.options.RenewEvery; {
	case !planned, f.mends != 0:
		return every
	case f.all:
		return every * time.Duration(min(before, deputies)+1)
	case f.many() && !f.pushes():
		return every
	}
	return f.group.challenge() * 3 / 5
}

func (f *follower) snapshot(seat int) rule.Snapshot { return f.group.seat(seat).view.Snapshot() }

// load reads the plan and some seats, and more seats as long as the last one has a record.
// It reports whether all reads have worked.
func (f *follower) load(ctx context.Context, seats []int) (ok bool) {
	g := f.group
	every := g.options.RenewEvery
	_, planned := f.rank(0)
	f.mutex.Lock()
	if f.wish.leaving || !planned { // others wait for it
		every /= 4
	}
	f.planAt = g.now() + every
	if f.live {
		f.planAt = rule.Never // but for the reads of seats, which read it too
	}
	f.mutex.Unlock()
	outcomes := g.loadSeats(ctx, seats, g.planName())
	if ctx.Err() != nil {
		return false
	}
	ok = f.takePlan(outcomes[0])
	var fault error
	more := false
	for j, i := range seats {
		o := outcomes[j+1]
		f.foreign[i] = isForeign(o.Err)
		ok = ok && (o.Err == nil || f.foreign[i])
		if fault == nil {
			fault = o.Err
		}
		if (o.Record.Exists() || f.foreign[i]) && i > f.top {
			f.top = i
			more = j == len(seats)-1 && i+1 < maxSeats
		}
	}
	if len(seats) > 0 {
		f.complain("cannot read a seat", fault)
	}
	return (!more || f.load(ctx, []int{f.top + 1})) && ok
}

// loadSeats reads some records, and those of some seats, which it enters into their views.
func (g *Group) loadSeats(ctx context.Context, seats []int, names ...string) []backends.Outcome {
	marks := make([]uint64, len(seats))
	others := len(names)
	for j, i := range seats {
		names = append(names, g.seatName(i))
		marks[j] = g.seat(i).view.Mark()
	}
	outcomes := g.requests.LoadAll(ctx, names)
	for j, i := range seats {
		if o := outcomes[others+j]; o.Err == nil {
			g.seat(i).view.Read(o.Record, marks[j], g.now())
		}
	}
	return outcomes
}

// takePlan takes what a read of the plan has shown.
func (f *follower) takePlan(o backends.Outcome) (ok bool) {
	g := f.group
	if f.complain("cannot read the plan", o.Err); o.Err != nil {
		return false
	}
	f.read, f.record, f.trouble = true, o.Record, nil
	if drained := drainedIn(o.Record); !slices.Equal(drained, f.drained) {
		f.drained, f.seatsAt = drained, 0
	}
	var p *plan
	if isPlan(o.Record) {
		if p, f.trouble = g.readPlan(o.Record); p != nil {
			if err := g.agrees(p); err != nil { // it was changed
				p, f.trouble = nil, err
				f.s.dismiss(err)
			}
		}
	}
	f.complain("moves no partition", f.trouble)
	if p != nil {
		g.known = p
		for _, at := range p.positions { // a seat before it may have no record
			f.top = max(f.top, at.seat)
		}
		g.audit.Store(int64(p.audit))
	}
	f.mutex.Lock()
	changed := f.id != o.Record.Attempt.Nonce || f.text != o.Record.Value // also if it was edited
	f.text = o.Record.Value
	if changed || f.plan == nil {
		f.plan, f.id = p, o.Record.Attempt.Nonce
	}
	f.mutex.Unlock()
	if changed {
		f.seen, f.mends = g.now(), 0
		wake(f.s.woken)
	}
	return true
}

// usable returns the plan in a record, if this process can share partitions by it.
func (g *Group) usable(r backends.Record) (*plan, error) {
	p, err := g.readPlan(r)
	if err == nil {
		err = g.agrees(p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// complain logs why something does not work, once until it works again; err is nil then.
func (f *follower) complain(what string, err error) {
	if err == nil {
		delete(f.said, what)
	} else if text := err.Error(); text != f.said[what] {
		f.said[what] = text
		f.group.log.Log(context.Background(), levelOf(err), "elector: this member of the group "+what, "error", err)
	}
}

// publish writes this member's note, if it has changed.
func (f *follower) publish(ctx context.Context) {
	g := f.group
	f.mutex.Lock()
	n := f.wish
	f.mutex.Unlock()
	n.planned, n.partitions, n.weight, n.value = g.known != nil, g.o.Partitions, g.o.Weight, g.o.Elector.Value
	if n == f.published || !f.read {
		return
	}
	ctx, cancel := g.clock.WithTimeout(ctx, g.options.RequestTimeout)
	defer cancel()
	err := f.s.lease.Proclaim(ctx, n.String())
	if f.complain("cannot write its seat", err); err != nil {
		return
	}
	if f.published.leaving != n.leaving || f.published.weight == 0 {
		f.seatsAt = 0 // its own note counts too
	}
	f.published = n
}
