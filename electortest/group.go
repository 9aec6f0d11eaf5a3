package electortest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/partition"
)

// A Group directs the members of a group of package partition, each as in a process of its
// own: they join, leave, crash, are paused and cut off. NewGroup makes it.
type Group struct {
	t        testing.TB
	name     string
	options  partition.Options
	patience time.Duration
	bubble   bool
	store    *memory.Store
	looker   *partition.Group
	members  []*Member // that have not left or crashed
}

// A Member is a process of a Group. Join makes it.
type Member struct {
	// Group is this process's part in the group. It is closed at the end of the test.
	Group *partition.Group

	script  *Group
	fault   *fault.Backend
	machine *machine
	down    bool // by Outage
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // of Run, once done is closed
	freed   chan struct{}

	mutex  sync.Mutex
	leases map[int]*partition.Lease
	drain  time.Duration // of SlowDrain
	stuck  bool
}

// NewGroup makes a group without members, on an empty store that works. The options are
// those of each member, but for Elector.ID. Without a Logger, the log goes to the test's
// output.
func NewGroup(t testing.TB, name string, o *partition.Options) *Group {
	t.Helper()
	g := &Group{t: t, name: name, bubble: inBubble(), store: memory.NewStore()}
	if o != nil {
		g.options = *o
	}
	e := &g.options.Elector
	if e.Logger == nil {
		e.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	e.TTL = cmp.Or(e.TTL, 15*time.Second)
	g.patience = 10*e.TTL + 2*e.ReleaseTimeout + 4*g.options.Settle + time.Minute
	looker, err := partition.New(g.store.Handle(), name, &partition.Options{Elector: elector.Options{Logger: e.Logger}})
	if err != nil {
		t.Fatalf("electortest: %v", err)
	}
	g.looker = looker
	t.Cleanup(func() { looker.Close() })
	return g
}

// Join starts a process that joins the group and calls Run with work. It does not wait until
// the process owns partitions: see Balance. A nil work waits until it is told to stop.
func (g *Group) Join(id string, work partition.Work) *Member {
	g.t.Helper()
	if work == nil {
		work = func(ctx context.Context, _ *partition.Lease) error { <-ctx.Done(); return nil }
	}
	m := &Member{script: g, machine: newMachine(g.bubble), done: make(chan struct{}), freed: make(chan struct{}), leases: map[int]*partition.Lease{}}
	o := g.options
	o.Elector.ID = id
	o.Trace = partition.MultiTrace(&partition.Trace{Acquired: m.acquired}, o.Trace)
	f, b := fault.Wrap(g.store.Handle())
	part, err := partition.New(inject.Backend{Backend: b, Clock: m.machine}, g.name, &o)
	if err != nil {
		g.t.Fatalf("electortest: %v", err)
	}
	m.fault, m.Group = f, part
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.err = part.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
			err := work(ctx, l)
			if ctx.Err() != nil {
				m.hang()
			}
			return err
		})
	}()
	g.members = append(g.members, m)
	g.t.Cleanup(m.end)
	g.settle()
	return m
}

func (m *Member) acquired(_ context.Context, i partition.LeaseInfo) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.leases[i.Partition] = i.Lease
}

// hang keeps a worker from returning: see SlowDrain and Stick.
func (m *Member) hang() {
	m.mutex.Lock()
	drain, stuck := m.drain, m.stuck
	m.mutex.Unlock()
	if drain == 0 && !stuck {
		return
	}
	late := time.NewTimer(drain)
	defer late.Stop()
	if stuck {
		late.Stop()
	}
	select {
	case <-late.C:
	case <-m.freed:
	}
}

// end ends a member at the end of the test.
func (m *Member) end() {
	close(m.freed)
	if m.isMember() {
		m.Restore()
		_ = m.Leave() // its error is the business of a test that calls Leave
	}
	<-m.done // of a crashed one
	m.Group.Close()
}

func (m *Member) isMember() bool { return slices.Contains(m.script.members, m) }

// remove takes a member from those that Balance waits for.
func (m *Member) remove() {
	m.script.members = slices.DeleteFunc(m.script.members, func(other *Member) bool { return other == m })
}

// Owns returns the partitions on which this process has valid leases.
func (m *Member) Owns() []int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	maps.DeleteFunc(m.leases, func(_ int, l *partition.Lease) bool { return l.Remaining() == 0 })
	return slices.Sorted(maps.Keys(m.leases))
}

// Balance waits until each process owns the partitions that it should: all that have joined
// and have not left, crashed or lost the store. Those own no partition any more. In a bubble
// the workers have been called.
func (g *Group) Balance() {
	g.t.Helper()
	late := time.Now().Add(g.patience)
	for {
		g.settle()
		why := g.unbalanced()
		if why == "" {
			return
		}
		if time.Now().After(late) {
			g.t.Fatalf("electortest: after %v the partitions of group %q are not where they should be: %s", g.patience, g.name, why)
		}
		time.Sleep(g.options.Elector.TTL / 100)
	}
}

// unbalanced returns what Balance waits for, empty if nothing.
func (g *Group) unbalanced() string {
	owns, want := map[int]string{}, []string{}
	for _, m := range g.members {
		if !m.down {
			want = append(want, m.Group.ID())
		}
		for _, n := range m.Owns() {
			if owns[n] = m.Group.ID(); m.down {
				return fmt.Sprintf("%q cannot reach the store, and still owns partition %d", m.Group.ID(), n)
			}
		}
		select {
		case <-m.done:
			return fmt.Sprintf("Run of %q has returned: %v", m.Group.ID(), m.err)
		default:
		}
	}
	if len(want) == 0 {
		return ""
	}
	members, err := g.looker.Members(context.Background())
	if err != nil {
		return err.Error()
	}
	var ids []string
	least, most := partition.MaxPartitions, 0
	for _, m := range members {
		if m.Leaving {
			continue
		}
		ids = append(ids, m.ID)
		if !m.Drained {
			least, most = min(least, m.Planned), max(most, m.Planned)
		} else if m.Planned > 0 {
			return fmt.Sprintf("%q is drained, and still should own %d partitions", m.ID, m.Planned)
		}
	}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		return fmt.Sprintf("its members are %q, and should be %q", ids, want)
	}
	if most > least+1 {
		return fmt.Sprintf("its members should own %d to %d partitions, until they plan anew", least, most)
	}
	owners, err := g.looker.Owners(context.Background())
	if err != nil {
		return err.Error()
	}
	for _, o := range owners {
		switch {
		case o.ID == "":
			return fmt.Sprintf("partition %d, which %q should own, has no owner: %s", o.Partition, o.Planned, o.Waiting)
		case o.ID != o.Planned, owns[o.Partition] != o.ID:
			return fmt.Sprintf("partition %d of %q should be that of %q", o.Partition, o.ID, o.Planned)
		}
	}
	if len(owners) == 0 {
		return "it has no plan"
	}
	return ""
}

// settle waits, in a bubble, until all other goroutines wait.
func (g *Group) settle() {
	if g.bubble {
		synctest.Wait()
	}
}

// Leave stops the process as SIGTERM does: it ends the context of Run, waits until Run has
// returned, and returns its error. Each worker goes on until its partition moves.
func (m *Member) Leave() error {
	g := m.script
	g.t.Helper()
	m.cancel()
	m.remove()
	late := time.NewTimer(g.patience)
	defer late.Stop()
	select {
	case <-m.done:
		g.settle()
		return m.err
	case <-late.C:
		g.t.Fatalf("electortest: Run of %q in group %q has not returned within %v of the end of its context; does its backend hang?", m.Group.ID(), g.name, g.patience)
		return nil
	}
}

// Crash ends the process as SIGKILL does, or a power failure: the store learns nothing of
// it, and the other processes take over after TTL*(1+ClockDrift). A goroutine cannot be
// killed: the contexts of the workers end and Check fails, so that they return. What a
// worker does after that, one that was killed would not have done.
func (m *Member) Crash() {
	m.remove()
	m.stop(time.Hour * 24 * 365 * 50)
	m.cancel()
	m.script.settle()
}

// stop makes the clocks show a later time, and cuts the process off from the store.
func (m *Member) stop(d time.Duration) {
	connect(m.fault, true, 0)
	m.machine.until.Store(int64(m.machine.Now().Mono + d))
}

// Pause freezes the process for d, and returns when it goes on: a SIGSTOP, a suspended
// virtual machine, a long garbage collection. It sends nothing and gets no answer; the other
// processes take over if d is longer than TTL*(1+ClockDrift), and Pause is then the time in
// which they do.
//
// Goroutines cannot be frozen. To a worker that does not wait for the test the pause is over
// at its start: if the lease was valid for less than d, Check fails from then on, and the
// context ends a little later. A worker that waits for the test, such as one between Check
// and its write, should go on when Pause has returned. If d is longer than ReleaseTimeout,
// the process does not wait for that worker any more when it joins again.
func (m *Member) Pause(d time.Duration) {
	m.stop(d)
	time.Sleep(d)
	m.set(m.down)
}

// Outage makes the store unreachable for this process until Restore. It loses its leases
// within TTL*(1-ClockDrift), and the other processes take over.
func (m *Member) Outage() { m.set(true) }

// Restore ends Outage. Requests under way are not answered any more. The process joins
// again.
func (m *Member) Restore() { m.set(false) }

func (m *Member) set(down bool) {
	m.down = down
	connect(m.fault, down, 0)
	m.script.settle()
}

// SlowDrain makes each worker of this process return d after it would: a worker that is told
// to stop and finishes its batch. The lease is valid meanwhile, for at most ReleaseTimeout,
// and no other process takes the partition. A d of 0 ends it for workers that are told to
// stop later.
func (m *Member) SlowDrain(d time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.drain = d
}

// Stick makes the workers of this process not return once they are told to stop, until the
// end of the test: a call without a deadline. The lease ends after ReleaseTimeout, and the
// other processes own the partition TTL*(1+ClockDrift) later.
func (m *Member) Stick() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stuck = true
}
