package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A fleet is some groups on one store, whose leases it watches.
type fleet struct {
	*testing.T
	store      *memory.Store
	partitions int
	ttl        time.Duration
	settle     time.Duration
	quiet      bool // logs nothing

	mutex   sync.Mutex
	leases  map[*Lease]*process
	highest map[int]elector.Token
	starts  int
}

// A process is one member.
type process struct {
	*Group
	stop context.CancelFunc
	done chan error
	link *link
}

// A link is a connection that can be cut.
type link struct {
	*memory.Backend
	mutex sync.Mutex
	cut   bool
	asked int // requests
}

// set cuts the connection, or mends it.
func (l *link) set(cut bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cut = cut
}

func (l *link) broken() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.asked++
	if l.cut {
		return backends.ErrUnavailable
	}
	return nil
}

func (l *link) Load(ctx context.Context, name string) (backends.Record, error) {
	if err := l.broken(); err != nil {
		return backends.Record{}, err
	}
	return l.Backend.Load(ctx, name)
}

func (l *link) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	if err := l.broken(); err != nil {
		return backends.Outcomes(len(names), err)
	}
	return l.Backend.LoadMany(ctx, names)
}

func (l *link) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if err := l.broken(); err != nil {
		return backends.Record{}, err
	}
	return l.Backend.Swap(ctx, name, prev, next)
}

func (l *link) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	if err := l.broken(); err != nil {
		return backends.Outcomes(len(changes), err)
	}
	return l.Backend.SwapMany(ctx, changes)
}

func (l *link) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if err := l.broken(); err != nil {
		return err
	}
	return l.Backend.Watch(ctx, name, changed)
}

// withFleet runs a test in a bubble of its own.
func withFleet(t *testing.T, partitions int, run func(f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		run(&fleet{T: t, store: memory.NewStore(), partitions: partitions, ttl: 15 * time.Second, leases: map[*Lease]*process{}, highest: map[int]elector.Token{}})
	})
}

// join starts a process.
func (f *fleet) join(id string, adjust func(*Options)) *process {
	return f.joinOn(id, adjust, func(l *link) backends.Backend { return l })
}

func (f *fleet) joinOn(id string, adjust func(*Options), on func(*link) backends.Backend) *process {
	o := &Options{Partitions: f.partitions, Settle: f.settle, Elector: elector.Options{ID: id, TTL: f.ttl, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}}
	if adjust != nil {
		adjust(o)
	}
	p := &process{done: make(chan error, 1), link: &link{Backend: f.store.Handle()}}
	g, err := New(on(p.link), "orders", o)
	if err != nil {
		f.Fatal(err)
	}
	p.Group = g
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() { p.done <- g.Run(ctx, func(ctx context.Context, l *Lease) error { return f.work(ctx, p, l) }) }()
	return p
}

func (f *fleet) output() io.Writer {
	if testing.Verbose() && !f.quiet {
		return f.Output()
	}
	return io.Discard
}

// work holds a partition until its context ends.
func (f *fleet) work(ctx context.Context, p *process, l *Lease) error {
	f.mutex.Lock()
	f.starts++
	for other, of := range f.leases {
		if other.Partition() == l.Partition() && other.Remaining() > 0 && l.Remaining() > 0 {
			f.Errorf("%s takes %v while %s has a valid lease with token %d", p.ID(), l, of.ID(), other.Token())
		}
	}
	if l.Token() <= f.highest[l.Partition()] {
		f.Errorf("%s has %v after token %d", p.ID(), l, f.highest[l.Partition()])
	}
	f.highest[l.Partition()] = l.Token()
	f.leases[l] = p
	f.mutex.Unlock()
	<-ctx.Done()
	return nil
}

// owners returns the owner of each partition, and how many partitions each one has.
func (f *fleet) owners() (owners map[int]string, shares map[string]int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	owners, shares = map[int]string{}, map[string]int{}
	for l, p := range f.leases {
		if l.Check() != nil {
			delete(f.leases, l)
			continue
		}
		if other := owners[l.Partition()]; other != "" {
			f.Errorf("%s and %s have valid leases on partition %d", other, p.ID(), l.Partition())
		}
		owners[l.Partition()] = p.ID()
		shares[p.ID()]++
	}
	return owners, shares
}

// settles waits until these processes share the partitions, evenly.
func (f *fleet) settles(within time.Duration, ids ...string) (owners map[int]string) {
	f.Helper()
	start := time.Now()
	for {
		owners, shares := f.owners()
		least, most := f.partitions, 0
		for _, n := range shares {
			least, most = min(least, n), max(most, n)
		}
		if len(owners) == f.partitions && most-least <= 1 && slices.Equal(slices.Sorted(maps.Keys(shares)), slices.Sorted(slices.Values(ids))) {
			f.Logf("%d processes share %d partitions after %v", len(ids), len(owners), time.Since(start))
			return owners
		}
		if time.Since(start) > within {
			f.Fatalf("after %v: %d of %d partitions have owners: %v", within, len(owners), f.partitions, shares)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// moved counts the partitions whose owner differs.
func moved(before, after map[int]string) (n int) {
	for partition, id := range after {
		if before[partition] != id {
			n++
		}
	}
	return n
}

// ends ends all processes.
func (f *fleet) ends(all ...*process) {
	f.Helper()
	for _, p := range all {
		p.stop()
	}
	for _, p := range all {
		if err := <-p.done; err != nil {
			f.Errorf("%s: %v", p.ID(), err)
		}
		if err := p.Close(); err != nil {
			f.Errorf("%s: %v", p.ID(), err)
		}
	}
}

// Processes come, leave and crash: each partition has one owner, shares are even, and the
// fewest partitions move.
func TestMembers(t *testing.T) {
	withFleet(t, 100, func(f *fleet) {
		a := f.join("a", nil)
		one := f.settles(time.Minute, "a")
		b := f.join("b", nil)
		two := f.settles(time.Minute, "a", "b")
		if n := moved(one, two); n != 50 {
			t.Errorf("a second process moves %d partitions, not 50", n)
		}
		c, d := f.join("c", nil), f.join("d", nil)
		four := f.settles(time.Minute, "a", "b", "c", "d")
		if n := moved(two, four); n != 50 {
			t.Errorf("two more move %d partitions, not 50", n)
		}
		b.stop()
		three := f.settles(time.Minute, "a", "c", "d")
		if n := moved(four, three); n != 25 {
			t.Errorf("one that leaves moves %d partitions, not 25", n)
		}
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		e := f.join("e", nil)
		if again := f.settles(time.Minute, "a", "c", "d", "e"); moved(four, again) != 25 {
			t.Errorf("one that comes in its place moves %d partitions, not 25", moved(four, again))
		}
		d.link.set(true)
		start := time.Now()
		f.settles(time.Minute, "a", "c", "e")
		if took := time.Since(start); took > 16500*time.Millisecond+2*4500*time.Millisecond {
			t.Errorf("after a crash it takes %v", took)
		}
		d.link.set(false)
		f.settles(2*time.Minute, "a", "c", "d", "e")
		b.Close()
		f.ends(a, c, d, e)
	})
}

// A restart in the same seat, within Settle, moves nothing else.
func TestRestart(t *testing.T) {
	withFleet(t, 60, func(f *fleet) {
		var all []*process
		for i := range 6 {
			all = append(all, f.join(fmt.Sprint(i), nil))
		}
		before := f.settles(time.Minute, "0", "1", "2", "3", "4", "5")
		all[2].stop()
		time.Sleep(time.Second)
		all = append(all, f.join("new", nil))
		after := f.settles(time.Minute, "0", "1", "new", "3", "4", "5")
		if n := moved(before, after); n != 10 {
			t.Errorf("a restart moves %d partitions, not 10", n)
		}
		f.ends(all...)
	})
}

// A worker that fails, panics or ends its goroutine is called again, and no other
// partition knows of it.
func TestWorkerFails(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		calls := map[int]int{}
		var mutex sync.Mutex
		g, err := New(f.store.Handle(), "orders", &Options{Partitions: 4, Elector: elector.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
				mutex.Lock()
				calls[l.Partition()]++
				mutex.Unlock()
				switch l.Partition() {
				case 0:
					return errors.New("it fails")
				case 1:
					panic("it panics")
				case 2:
					runtime.Goexit()
				}
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Minute)
		mutex.Lock()
		if calls[0] < 5 || calls[1] < 5 || calls[2] != 1 || calls[3] != 1 {
			t.Errorf("the workers were called so often: %v", calls)
		}
		mutex.Unlock()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.Close()
	})
}

// A process with another number of partitions is refused, and says why.
func TestAnotherNumber(t *testing.T) {
	withFleet(t, 10, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		b := f.join("b", func(o *Options) { o.Partitions = 11 })
		if err := <-b.done; !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("another number of partitions: %v", err)
		}
		b.Close()
		f.ends(a)
	})
}

// What the store shows of a group: members, owners, and why a partition has none.
func TestState(t *testing.T) {
	withFleet(t, 10, func(f *fleet) {
		a := f.join("a", func(o *Options) { o.Elector.Value = "a:1" })
		f.settles(time.Minute, "a")
		states := make(chan *Assignment, 100)
		ctx, cancel := context.WithCancel(f.Context())
		go func() {
			defer close(states)
			for s, err := range a.Observe(ctx) {
				if err == nil {
					states <- s
				}
			}
		}()
		if s := <-states; len(s.Members) != 1 || s.Partitions() != 10 || s.Members[0].Planned != 10 {
			t.Errorf("the first state is %+v", s)
		}
		b := f.join("b", func(o *Options) { o.Elector.Value = "b:2"; o.Weight = 4 })
		synctest.Wait()
		var last *Assignment
		for last == nil || last.Members[len(last.Members)-1].Planned != 8 {
			last = <-states
		}
		time.Sleep(time.Second)
		for n := range 10 {
			o, err := a.Owner(f.Context(), n)
			if m, _ := last.Planned(n); err != nil || o.ID != m.ID || o.Value != m.Value || o.Token == 0 || o.Waiting != "" {
				t.Errorf("partition %d is owned by %+v, %v, and the state has %+v", n, o, err, m)
			}
		}
		f.ends(b)
		members, err := a.Members(f.Context())
		if len(members) != 1 || members[0] != (Member{ID: "a", Weight: 1, Value: "a:1", Planned: 10, Attempt: members[0].Attempt, TTL: f.ttl}) || err != nil {
			t.Errorf("the members are %+v, %v", members, err)
		}
		time.Sleep(f.ttl)
		state, err := a.Assignment(f.Context())
		if err != nil || state.Partitions() != 10 || len(state.Members) != 1 || state.Members[0].Attempt.Sequence <= members[0].Attempt.Sequence || state.Members[0].Attempt.Nonce != members[0].Attempt.Nonce {
			t.Errorf("a TTL later the state is %+v, %v", state, err)
		}
		f.ends(a)
		cancel()
		if _, err := a.Owner(f.Context(), 3); !errors.Is(err, elector.ErrClosed) {
			t.Errorf("Owner after Close: %v", err)
		}
		looker, err := New(f.store.Handle(), "orders", &Options{Partitions: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer looker.Close()
		if o, err := looker.Owner(f.Context(), 3); err != nil || o.ID != "" || o.Waiting == "" {
			t.Errorf("partition 3 of a group without members: %+v, %v", o, err)
		}
		for range states {
		}
	})
}

// The number of partitions changes only when no member runs, and tokens go on from what
// they were.
func TestResize(t *testing.T) {
	withFleet(t, 10, func(f *fleet) {
		o := &elector.Options{TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}
		if err := Resize(f.Context(), f.store.Handle(), "orders", 5, o); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("a group that does not exist: %v", err)
		}
		a, b := f.join("a", nil), f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		if err := Resize(f.Context(), f.store.Handle(), "orders", 5, o); !errors.Is(err, elector.ErrHeld) || !strings.Contains(err.Error(), `member "a" runs`) && !strings.Contains(err.Error(), `member "b" runs`) {
			t.Errorf("while members run: %v", err)
		}
		b.link.set(true) // as good as crashed
		f.ends(a)
		for _, n := range []int{20, 10} {
			if err := Resize(f.Context(), f.store.Handle(), "orders", n, o); err != nil {
				t.Fatal(err)
			}
			f.partitions = n
			c := f.join("c", nil)
			f.settles(time.Minute, "c")
			f.ends(c)
		}
		f.partitions = 20
		b.link.set(false)
		f.join("d", nil).stop()
		f.ends(b)
	})
}
