package partition

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/rule"
)

// A Member is a process of a group, as its seat shows it.
type Member struct {
	ID      string
	Seat    int
	Weight  int
	Value   string // Options.Elector.Value, such as an address
	Leaving bool   // it hands its partitions over
	Drained bool   // the same, by DrainMember

	// Planned is how many partitions the plan gives to this member. It owns them soon.
	Planned int

	// Attempt is what the member has written last, and TTL that of its lease. Each renewal
	// changes Attempt: a member whose Attempt stays the same for TTL*(1+ClockDrift) is gone.
	Attempt backends.Attempt
	TTL     time.Duration
}

// An Assignment is which member should own each partition. It is for display and routing: a
// partition may be on its way from another member, and the assignment may be out of date.
// Owner and Owners of Group read which member does own a partition.
type Assignment struct {
	Members []Member // in the order of their seats

	table []int // a seat for each partition; nil without a plan
}

// Partitions returns the number of partitions, 0 if the group has no plan yet.
func (s *Assignment) Partitions() int { return len(s.table) }

// Planned returns the member that should own a partition, and whether there is one.
func (s *Assignment) Planned(partition int) (Member, bool) {
	if partition < 0 || partition >= len(s.table) {
		return Member{}, false
	}
	for _, m := range s.Members {
		if m.Seat == s.table[partition] {
			return m, true
		}
	}
	return Member{}, false
}

// same reports whether both are the same but for renewals.
func (s *Assignment) same(t *Assignment) bool {
	return t != nil && slices.Equal(s.table, t.table) && slices.EqualFunc(s.Members, t.Members, func(a, b Member) bool {
		a.Attempt = b.Attempt
		return a == b
	})
}

// An Owner is what the store shows of one partition.
type Owner struct {
	Partition int
	ID        string        // of the owner; empty if no process owns the partition
	Value     string        // Options.Elector.Value of the owner
	Token     elector.Token // of the owner, or of the last one

	// Since is when the owner acquired the partition, by the clock of its machine; zero if
	// no process owns it, or the token does not show the time.
	Since time.Time

	// Planned is the ID of the member that should own the partition, empty if there is none.
	// If it is not the owner, the partition moves. Owners sets it; Owner does not.
	Planned string

	// Waiting is why no process owns the partition, empty if one does.
	Waiting string
}

// Members reads the members of the group.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	v, err := g.lookFor(ctx, "members")
	if v.state == nil {
		return nil, err
	}
	return v.state.Members, nil
}

// Assignment reads which member should own each partition, as Observe yields it.
func (g *Group) Assignment(ctx context.Context) (*Assignment, error) {
	v, err := g.lookFor(ctx, "assignment")
	if err != nil {
		return nil, err
	}
	return v.state, nil
}

// lookFor reads the state of the group for a call of a user.
func (g *Group) lookFor(ctx context.Context, op string) (v view, err error) {
	ctx, end, err := g.begin(ctx)
	if err == nil {
		defer end()
		v, err = g.look(ctx)
	}
	return v, g.fail(op, -1, err)
}

// Owner reads which process owns a partition: the record of the partition and the seat that
// it names. It may be out of date when it returns.
func (g *Group) Owner(ctx context.Context, partition int) (Owner, error) {
	o := Owner{Partition: partition}
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return o, g.fail("owner", -1, err)
	}
	defer end()
	if n := cmp.Or(g.o.Partitions, MaxPartitions); partition < 0 || partition >= n {
		return o, g.fail("owner", -1, fmt.Errorf("%w: partition %d is not between 0 and %d", elector.ErrInvalid, partition, n-1))
	}
	var seat backends.Record
	r, err := g.load(ctx, g.record(partition))
	if err == nil {
		g.glimpse(partition, r)
		if in, err2 := rule.Holder(r); err2 == nil && !r.Vacant() {
			seat, err = g.load(ctx, g.seatName(in.Seat))
		}
	}
	if err == nil {
		o, err = owner(partition, r, seat)
	}
	return o, g.fail("owner", partition, err)
}

// glimpse makes what Owner and Owners have seen count for this process's part in the group: a
// record with a lower token was put back.
func (g *Group) glimpse(partition int, r backends.Record) {
	if _, err := rule.Holder(r); err == nil && partition < len(g.trails) {
		g.trail(partition).Glimpse(r)
	}
}

// owner returns what the record of a partition shows, and that of the seat that it names.
func owner(partition int, r, seat backends.Record) (Owner, error) {
	o := Owner{Partition: partition, Token: elector.Token(r.Token)}
	in, err := rule.Holder(r)
	switch {
	case !r.Exists():
		o.Waiting = "it has no record: no process has owned it yet, or the record was deleted"
	case err != nil:
		return o, fmt.Errorf("%w: %w", elector.ErrForeignRecord, err)
	case r.Vacant():
		o.Waiting = "its last owner has given it up"
	case seat.Vacant() || seat.Attempt.Nonce != in.Nonce:
		o.Waiting = fmt.Sprintf("its last owner %q has left seat %d", r.Holder, in.Seat)
	default:
		o.ID, o.Since = r.Holder, annex.StartOf(r.Token)
		if n, ok := parseNote(seat); ok {
			o.Value = n.value
		}
	}
	return o, nil
}

// Owners reads which processes own the partitions: Owner of each, in their order. A
// partition whose record cannot be used has no owner, and Waiting is why. Owners sends as
// many requests as it takes to read all records, several in one where the store can.
func (g *Group) Owners(ctx context.Context) ([]Owner, error) {
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return nil, g.fail("owners", -1, err)
	}
	defer end()
	v, err := g.look(ctx)
	if err != nil {
		return nil, g.fail("owners", -1, err)
	}
	names := make([]string, v.state.Partitions())
	for n := range names {
		names[n] = g.record(n)
	}
	owners := make([]Owner, len(names))
	outcomes, err := g.loadRecords(ctx, names)
	if err != nil {
		return nil, err
	}
	now, err := g.look(ctx) // a seat that was read before may show who held it before
	if now.state == nil {
		return nil, g.fail("owners", -1, err)
	}
	for n, loaded := range outcomes {
		err := loaded.Err
		owners[n].Partition = n
		if err == nil {
			g.glimpse(n, loaded.Record)
			in, _ := rule.Holder(loaded.Record) // owner returns the error
			owners[n], err = owner(n, loaded.Record, now.seats[in.Seat])
		}
		if err != nil {
			owners[n].Waiting = fmt.Sprintf("record %s cannot be used: %v", names[n], err)
		}
		if m, ok := now.state.Planned(n); ok {
			owners[n].Planned = m.ID
		}
	}
	return owners, nil
}

// loadRecords reads the records of partitions. It ends with the first error of the store, so
// that a store that does not answer costs the timeouts of a few requests.
func (g *Group) loadRecords(ctx context.Context, names []string) (outcomes []backends.Outcome, err error) {
	most := g.backend.Describe().MaxLoads
	if most < 2 {
		most = 64 // one by one
	}
	for some := range slices.Chunk(names, most) {
		for _, o := range g.requests.LoadAll(ctx, some, g.options.RequestTimeout) {
			if o.Err != nil && !isForeign(o.Err) {
				return nil, g.fail("owners", len(outcomes), o.Err)
			}
			outcomes = append(outcomes, o)
		}
	}
	return outcomes, nil
}

// Observe yields the assignment of the group, and then each change of it: members that come,
// leave and go, and partitions that move. It reads the plan once in each renewal interval,
// or when it changes if the store pushes changes, and the seats in each renewal interval.
//
// Observe blocks until there is a change. A pair with an error is the last one: the cause
// of ctx when that ends, or, before any pair without an error, what passes only when
// somebody changes something, such as elector.ErrForeignRecord. After the first pair that is
// logged at level Error and tried again.
func (g *Group) Observe(ctx context.Context) iter.Seq2[*Assignment, error] {
	return func(yield func(*Assignment, error) bool) {
		ctx, end, err := g.begin(ctx)
		if err != nil {
			yield(nil, g.fail("observe", -1, err))
			return
		}
		defer end()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		woken := make(chan struct{}, 1)
		if g.requests.Watches() {
			g.active.Go(func() { g.watchPlan(ctx, func(*backends.Record) { wake(woken) }) })
		}
		var shown *Assignment
		said := ""
		for ctx.Err() == nil {
			v, err := g.look(ctx)
			switch s := v.state; {
			case ctx.Err() != nil:
			case err != nil && ends(err, shown != nil):
				yield(nil, g.fail("observe", -1, err))
				return
			case err != nil:
				if text := aside.Reason(err.Error()); text != said {
					said = text
					g.log.Log(ctx, levelOf(err), "elector: the state of the group cannot be read", "error", err)
				}
			case !s.same(shown):
				if shown = s; !yield(s, nil) {
					return
				}
			}
			g.wait(ctx, g.now()+g.options.RenewEvery, woken)
		}
		yield(nil, g.fail("observe", -1, context.Cause(ctx)))
	}
}

// A view is what a read of a group has shown.
type view struct {
	state *Assignment
	seats map[int]backends.Record // those that have a record; empty if it is foreign
	plan  backends.Record
}

// look reads the state of the group. If its plan cannot be used, it returns why, and a state
// without a table.
func (g *Group) look(ctx context.Context) (v view, trouble error) {
	s := &Assignment{}
	v = view{state: s, seats: map[int]backends.Record{}}
	for from, n, top := 0, 4, 0; from <= top; from, n = from+n, 2*n {
		names := []string{g.planName()}
		for i := range n {
			names = append(names, g.seatName(from+i))
		}
		outcomes := g.requests.LoadAll(ctx, names, g.options.RequestTimeout)
		for j, o := range outcomes {
			if o.Err != nil && !(isForeign(o.Err) && j > 0) {
				return view{}, o.Err
			}
			if j == 0 || o.Err == nil && !o.Record.Exists() {
				continue
			}
			seat := from + j - 1
			top, v.seats[seat] = max(top, seat+1), o.Record
			if note, ok := parseNote(o.Record); ok {
				s.Members = append(s.Members, Member{ID: o.Record.Holder, Seat: seat, Weight: note.weight, Value: note.value, Leaving: note.leaving, Attempt: o.Record.Attempt, TTL: o.Record.TTL})
			}
		}
		if r := outcomes[0].Record; isPlan(r) && s.table == nil {
			v.plan = r
			var p *plan
			if p, trouble = g.readPlan(r); p == nil {
				continue
			}
			top = max(top, p.top())
			if trouble = g.agrees(p); trouble == nil {
				s.table = p.table()
			}
		}
	}
	planned, drained := map[int]int{}, drainedIn(v.plan)
	for _, seat := range s.table {
		planned[seat]++
	}
	for i := range s.Members {
		m := &s.Members[i]
		m.Drained, m.Planned = slices.Contains(drained, m.ID), planned[m.Seat]
	}
	return v, trouble
}
