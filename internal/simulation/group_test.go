package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/partition"
)

// A fleet is the members of a group, on one store, with a checker of what they own.
type fleet struct {
	*testing.T
	seed    uint64
	store   *memory.Store
	history *history
	options partition.Options // of all members
	settle  bool              // no more faults

	mutex    sync.Mutex
	members  []*member
	leases   map[int][]*holding // by partition, those that may be valid
	highest  map[int]elector.Token
	spoiled  map[int]time.Duration // until when a lost write excuses a second owner, by partition
	founding time.Duration         // when the plan was founding last, as far as a write has shown
	shared   map[int]time.Duration // until when a deletion while the plan was founding excuses one
	wiped    map[int]bool          // partitions whose record was deleted: then the machine's clock gives the token
	returned map[int]time.Duration // when a worker returned last, by partition
	owned    map[int]time.Duration // when a lease began last
	changed  time.Duration         // when a lease began or ended last
	counts   map[string]int
	reported bool
}

// A member is one process.
type member struct {
	f       *fleet
	name    string
	number  uint64
	machine *machine
	wire    *wire
	group   *partition.Group
	stop    context.CancelFunc
	done    chan struct{}
	over    chan struct{} // closed when all ends
	crashed atomic.Bool
	gone    atomic.Bool   // it leaves, or has
	stays   int           // the worker of this partition never returns; -1 for none
	slow    time.Duration // the worker of the last partition takes so long to return
	stalls  bool          // workers do not call Check
	fails   bool          // workers fail at once
	sick    atomic.Bool
	refused string        // Run may return an error that has this text
	working sync.Map      // partition → *atomic.Int32, calls of the worker that have not returned
	instant atomic.Uint64 // of the latest random number
	draws   atomic.Uint64 // in it
}

// A holding is a lease on a partition, and who has it.
type holding struct {
	*partition.Lease
	member *member
}

const groupTTL = 2 * time.Second

// withFleet runs a simulation in a bubble of its own.
func withFleet(t *testing.T, seed uint64, partitions int, run func(f *fleet)) *fleet {
	t.Helper()
	var f *fleet
	synctest.Test(t, func(t *testing.T) {
		f = &fleet{
			T: t, seed: seed, store: memory.NewStore(), history: &history{start: time.Now()},
			options: partition.Options{Partitions: partitions, Elector: elector.Options{TTL: groupTTL}},
			leases:  map[int][]*holding{}, highest: map[int]elector.Token{}, spoiled: map[int]time.Duration{}, shared: map[int]time.Duration{}, wiped: map[int]bool{}, returned: map[int]time.Duration{}, owned: map[int]time.Duration{}, counts: map[string]int{},
		}
		defer f.end()
		run(f)
	})
	return f
}

func (f *fleet) now() time.Duration { return time.Since(f.history.start) }

func (f *fleet) broken(rule, format string, args ...any) {
	f.Helper()
	if f.reported {
		return
	}
	f.reported = true
	f.Errorf("seed %d: %s: %s\nreplay: go test ./internal/simulation -run '%s' -seed=%d\n%s", f.seed, rule, fmt.Sprintf(format, args...), f.Name(), f.seed, f.history.tail(120))
}

func (f *fleet) hit(kind string, m *member) {
	f.mutex.Lock()
	f.counts[kind]++
	f.mutex.Unlock()
	if m != nil {
		f.history.add(m.name, "fault: %s", kind)
	}
}

// calm reports whether faults have ended.
func (f *fleet) calm() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.settle
}

// join adds a member; adjust may be nil.
func (f *fleet) join(adjust func(m *member, o *partition.Options)) *member {
	f.mutex.Lock()
	m := &member{f: f, number: uint64(len(f.members)), stays: -1, done: make(chan struct{}), over: make(chan struct{})}
	m.name = fmt.Sprintf("m%d", m.number)
	f.members = append(f.members, m)
	f.mutex.Unlock()
	m.machine = newMachine(int(m.number))
	m.wire = newWire(m)
	o := f.options
	o.Elector.ID = m.name
	o.Elector.Logger = slog.New(logHandler{f.history, m.name, nil})
	if adjust != nil {
		adjust(m, &o)
	}
	g, err := partition.New(inject.Backend{Backend: m.wire.backend(), Clock: m.machine, Random: m.random}, "group", &o)
	if err != nil {
		f.Fatal(err)
	}
	m.group = g
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	go func() {
		defer close(m.done)
		if err := g.Run(ctx, m.work); err != nil && (m.refused == "" || !strings.Contains(err.Error(), m.refused)) {
			f.broken("Run", "%s: %v", m.name, err)
		}
		m.gone.Store(true)
	}()
	return m
}

// random depends on the instant, so that a seed replays, and differs within it.
func (m *member) random() uint64 {
	now := uint64(m.f.now())
	if m.instant.Swap(now) != now {
		m.draws.Store(0)
	}
	return newDice(m.f.seed, m.number, now, m.draws.Add(1), 1).next()
}

// work is the worker of all partitions of a member.
func (m *member) work(ctx context.Context, l *partition.Lease) error {
	f := m.f
	f.began(m, l)
	value, _ := m.working.LoadOrStore(l.Partition(), new(atomic.Int32))
	working := value.(*atomic.Int32)
	if n := working.Add(1); n > 1 && m.wire.prompt {
		f.broken("one worker", "%s works on partition %d twice", m.name, l.Partition())
	}
	defer func() {
		working.Add(-1)
		f.mutex.Lock()
		f.returned[l.Partition()] = f.now()
		f.mutex.Unlock()
	}()
	d := newDice(f.seed, m.number, uint64(l.Partition()), uint64(l.Token()), 31)
	if !f.calm() && !m.wire.prompt {
		switch d.below(20) {
		case 0:
			f.hit("worker fails", m)
			m.machine.sleep(ctx, d.between(0, 4*groupTTL))
			return errors.New("the worker fails")
		case 1:
			f.hit("worker panics", m)
			m.machine.sleep(ctx, d.between(0, 4*groupTTL))
			panic("the worker panics")
		case 2:
			<-ctx.Done()
			f.hit("worker lingers", m)
			m.machine.sleep(context.Background(), d.between(0, 4*groupTTL))
			return nil
		}
	}
	if m.fails {
		return errors.New("the worker failed")
	}
	if m.f.options.Elector.StallTimeout > 0 && !m.stalls {
		for ctx.Err() == nil && l.Check() == nil {
			m.machine.sleep(ctx, groupTTL/4)
		}
	}
	<-ctx.Done()
	switch {
	case l.Partition() == m.stays:
		<-m.over
	case l.Partition() == f.options.Partitions-1:
		m.machine.sleep(context.Background(), m.slow)
	}
	m.machine.sleep(context.Background(), d.between(0, groupTTL/50))
	m.machine.runs(false)
	return nil
}

// began checks a lease that has begun: it is the only valid one, and has the highest token.
// As no lease becomes valid again, two that are valid at one instant are found when the
// second one begins.
func (f *fleet) began(m *member, l *partition.Lease) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	n := l.Partition()
	for _, h := range f.leases[n] {
		if h.Lease == l {
			return // the worker is called again
		}
	}
	f.changed, f.owned[n] = f.now(), f.now()
	f.counts["leases"]++
	f.history.add(m.name, "owns %v", l)
	if l.Remaining() == 0 {
		return // it was over before the worker was called
	}
	var valid []*holding
	for _, h := range f.leases[n] {
		if h.Remaining() > 0 {
			valid = append(valid, h)
		}
	}
	excused := f.now() < f.spoiled[n]
	if len(valid) > 0 && !excused && f.now() >= f.shared[n] {
		f.broken("one owner", "%s owns %v while %s owns %v", m.name, l, valid[0].member.name, valid[0])
	}
	// A lease that is still valid drew its token at most a TTL ago.
	drawn := elector.Token((m.machine.moment().wall - groupTTL) / time.Microsecond)
	if l.Token() <= f.highest[n] && !excused && !(f.wiped[n] && drawn <= f.highest[n]) {
		f.broken("tokens grow", "%s owns %v after token %d", m.name, l, f.highest[n])
	}
	f.highest[n] = max(f.highest[n], l.Token())
	f.leases[n] = append(valid, &holding{l, m})
}

// owners returns the member that owns each partition.
func (f *fleet) owners() map[int]*member {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	owners := map[int]*member{}
	for n, all := range f.leases {
		for _, h := range all {
			if h.Remaining() == 0 {
				continue
			}
			if owners[n] != nil && f.now() >= max(f.spoiled[n], f.shared[n]) {
				f.broken("one owner", "%s and %s own partition %d", owners[n].name, h.member.name, n)
			}
			owners[n] = h.member
		}
	}
	return owners
}

// alive returns the members that have not crashed or left.
func (f *fleet) alive() (alive []*member) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, m := range f.members {
		if !m.crashed.Load() && !m.gone.Load() {
			alive = append(alive, m)
		}
	}
	return alive
}

// settles waits until each partition has an owner and the shares are even, and then
// requires that nothing moves any more.
func (f *fleet) settles(within time.Duration) (took time.Duration) {
	f.Helper()
	start := f.now()
	for !f.even() {
		if f.now()-start > within {
			f.broken("settles", "after %v: %s", within, f.describe())
			return within
		}
		time.Sleep(groupTTL / 20)
	}
	took = f.now() - start
	time.Sleep(20 * groupTTL)
	f.mutex.Lock()
	changed := f.changed
	f.mutex.Unlock()
	if changed > start+within {
		f.broken("stable", "a partition moved at %v, after all had settled", changed)
	}
	if !f.even() {
		f.broken("stable", "%s", f.describe())
	}
	return took
}

func (f *fleet) shares() map[*member]int {
	shares := map[*member]int{}
	for _, m := range f.alive() {
		shares[m] = 0
	}
	for _, m := range f.owners() {
		shares[m]++
	}
	return shares
}

func (f *fleet) even() bool {
	shares := slices.Sorted(maps.Values(f.shares()))
	sum := 0
	for _, n := range shares {
		sum += n
	}
	return sum == f.options.Partitions && shares[len(shares)-1]-shares[0] <= 1
}

func (f *fleet) describe() string {
	var b strings.Builder
	for m, n := range f.shares() {
		fmt.Fprintf(&b, "%s has %d; ", m.name, n)
	}
	owners := f.owners()
	for n := range f.options.Partitions {
		if owners[n] == nil {
			fmt.Fprintf(&b, "\npartition %d has no owner; its record: %s", n, f.store.Get(record(n)))
		}
	}
	for i := range 12 {
		if r := f.store.Get("group.seat." + strconv.Itoa(i)); r != nil {
			fmt.Fprintf(&b, "\nseat %d: %s", i, r)
		}
	}
	fmt.Fprintf(&b, "\nplan: %s", f.store.Get("group.plan"))
	return b.String()
}

func record(n int) string { return "group.p." + strconv.Itoa(n) }

// auditBound is A as the slowest clock counts it.
func auditBound() time.Duration {
	return time.Duration(1.25 * float64(rule.Challenge(rule.Audit(groupTTL), 0.1)))
}

// end lets everything run out.
func (f *fleet) end() {
	f.history.close()
	f.mutex.Lock()
	f.settle = true
	all := slices.Clone(f.members)
	f.mutex.Unlock()
	for _, m := range all {
		m.wire.cut(false)
		m.machine.wake()
		close(m.over)
		m.stop()
	}
	for _, m := range all {
		<-m.done
		m.group.Close()
	}
	time.Sleep(time.Hour)
}
