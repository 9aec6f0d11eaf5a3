package electortest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/partition"
)

// A ledger notes which lease each partition was worked on with last.
type ledger struct {
	*testing.T
	mutex  sync.Mutex
	leases map[int]*partition.Lease
	late   time.Duration // the longest time that a partition had no owner
}

func (l *ledger) acquired(_ context.Context, i partition.LeaseInfo) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.late = max(l.late, i.Unowned)
}

// work checks that no other worker may work on the partition, until it is told to stop.
func (l *ledger) work(ctx context.Context, lease *partition.Lease) error {
	l.mutex.Lock()
	n := lease.Partition()
	if before := l.leases[n]; before != nil && (before.Check() == nil || before.Token() >= lease.Token()) {
		l.Errorf("%v begins after %v, which ended with %v", lease, before, before.Check())
	}
	l.leases[n] = lease
	l.mutex.Unlock()
	<-ctx.Done()
	return nil
}

// of returns the leases on some partitions.
func (l *ledger) of(partitions []int) (leases []*partition.Lease) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, n := range partitions {
		leases = append(leases, l.leases[n])
	}
	return leases
}

// grouped runs a test in a bubble, with 8 partitions of two members that share them.
func grouped(t *testing.T, test func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member)) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{T: t, leases: map[int]*partition.Lease{}}
		g := electortest.NewGroup(t, "orders", &partition.Options{Partitions: 8, Trace: &partition.Trace{Acquired: l.acquired}})
		a, b := g.Join("a", l.work), g.Join("b", l.work)
		g.Balance()
		shares(t, a, b, 4, 4)
		test(t, g, l, a, b)
	})
}

// shares checks how many partitions two members own.
func shares(t *testing.T, a, b *electortest.Member, ofA, ofB int) {
	t.Helper()
	if len(a.Owns()) != ofA || len(b.Owns()) != ofB {
		t.Errorf("a owns %v and b %v, want %d and %d", a.Owns(), b.Owns(), ofA, ofB)
	}
}

func TestGroupJoinAndLeave(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member) {
		ofA := a.Owns()
		c := g.Join("c", l.work)
		g.Balance()
		if n := len(c.Owns()); n != 2 {
			t.Errorf("a third member owns %d of 8 partitions", n)
		}
		if err := c.Leave(); err != nil || len(c.Owns()) > 0 {
			t.Errorf("Leave returns %v, and it owns %v", err, c.Owns())
		}
		g.Balance()
		if !slices.Equal(a.Owns(), ofA) {
			t.Errorf("once it has left, a owns %v, before %v", a.Owns(), ofA)
		}
		if err := errors.Join(a.Leave(), b.Leave()); err != nil {
			t.Error(err)
		}
		a = g.Join("a", l.work)
		g.Balance()
		shares(t, a, b, 8, 0)
	})
}

func TestGroupCrash(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member) {
		time.Sleep(time.Minute)
		lost := l.of(b.Owns())
		start := time.Now()
		b.Crash()
		for _, lease := range lost {
			if lease.Check() == nil || lease.Context().Err() == nil {
				t.Errorf("%v of a process that crashed: %v, %v", lease, lease.Check(), lease.Context().Err())
			}
		}
		shares(t, a, b, 4, 0)
		g.Balance()
		shares(t, a, b, 8, 0)
		if took := time.Since(start); took < challenge-renewEvery || took > challenge+2*renewEvery {
			t.Errorf("the other owns them after %v, want about %v", took, challenge)
		}
		b = g.Join("b", l.work) // it comes back
		g.Balance()
		shares(t, a, b, 4, 4)
	})
}

func TestGroupPause(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member) {
		time.Sleep(time.Minute)
		kept, lost := a.Owns(), l.of(b.Owns())
		b.Pause(renewEvery)
		g.Balance()
		if got := l.of(b.Owns()); !slices.Equal(got, lost) {
			t.Errorf("after a pause that is shorter than a lease it has %v, before %v", got, lost)
		}
		go b.Pause(time.Minute)
		synctest.Wait()
		for _, lease := range lost {
			if lease.Check() == nil {
				t.Errorf("%v in a pause that is longer", lease)
			}
		}
		time.Sleep(time.Minute - time.Second)
		shares(t, a, b, 8, 0)
		time.Sleep(2 * time.Second)
		g.Balance()
		shares(t, a, b, 4, 4)
		for _, lease := range l.of(kept) {
			if err := lease.Check(); slices.Contains(a.Owns(), lease.Partition()) && err != nil {
				t.Errorf("the other lost %v: %v", lease, err)
			}
		}
	})
}

func TestGroupOutage(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member) {
		start, lost := time.Now(), l.of(a.Owns())
		a.Outage()
		shares(t, a, b, 4, 4)
		g.Balance()
		shares(t, a, b, 0, 8)
		if took := time.Since(start); took > challenge+2*renewEvery {
			t.Errorf("the other owns them after %v", took)
		}
		if err := lost[0].Check(); !errors.Is(err, elector.ErrLost) || !errors.Is(err, elector.ErrUnavailable) {
			t.Errorf("in the outage: %v", err)
		}
		a.Pause(time.Minute)
		g.Balance()
		shares(t, a, b, 0, 8)
		b.Outage()
		g.Balance()
		shares(t, a, b, 0, 0)
		a.Restore()
		b.Restore()
		g.Balance()
		shares(t, a, b, 4, 4)
	})
}

// DrainMember takes a member's partitions, until UndrainMember.
func TestGroupDrained(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, _ *ledger, a, b *electortest.Member) {
		if err := a.Group.DrainMember(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		g.Balance()
		shares(t, a, b, 8, 0)
		if err := a.Group.UndrainMember(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		g.Balance()
		shares(t, a, b, 4, 4)
	})
}

// A slow drain keeps the lease, and the newcomer waits for it.
func TestGroupSlowDrain(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member) {
		a.SlowDrain(10 * time.Second)
		before := l.of(a.Owns())
		c := g.Join("c", l.work)
		time.Sleep(3 * renewEvery)
		draining := slices.DeleteFunc(before, func(lease *partition.Lease) bool { return lease.Context().Err() == nil })
		if len(draining) != 1 || draining[0].Check() != nil {
			t.Errorf("while a partition moves: %v", draining)
		}
		start := time.Now()
		g.Balance()
		if took := time.Since(start); took > 10*time.Second || len(c.Owns()) != 2 {
			t.Errorf("after %v more c owns %v", took, c.Owns())
		}
		if err := draining[0].Check(); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("after the drain: %v", err)
		}
		if l.late > renewEvery/4 {
			t.Errorf("a partition had no owner for %v, with the drain, in which it had one", l.late)
		}
	})
}

// A worker that does not return holds its partition for ReleaseTimeout and C.
func TestGroupStick(t *testing.T) {
	grouped(t, func(t *testing.T, g *electortest.Group, l *ledger, a, b *electortest.Member) {
		a.Stick()
		before := l.of(a.Owns())
		c := g.Join("c", l.work)
		start := time.Now()
		g.Balance()
		if took := time.Since(start); took < ttl+challenge || took > ttl+challenge+3*renewEvery || len(c.Owns()) != 2 {
			t.Errorf("after %v c owns %v, want about %v", took, c.Owns(), ttl+challenge)
		}
		moved := slices.DeleteFunc(before, func(lease *partition.Lease) bool { return lease.Check() == nil })
		if len(moved) != 1 || !errors.Is(moved[0].Check(), elector.ErrLost) {
			t.Errorf("the leases of a worker that stayed: %v", moved)
		}
	})
}

// Outside a bubble the same steps work in real time.
func TestGroupRealTime(t *testing.T) {
	l := &ledger{T: t, leases: map[int]*partition.Lease{}}
	g := electortest.NewGroup(t, "orders", &partition.Options{Partitions: 3, Elector: elector.Options{TTL: 500 * time.Millisecond}})
	a, b := g.Join("a", l.work), g.Join("b", l.work)
	g.Balance()
	b.Crash()
	g.Balance()
	b = g.Join("b", nil)
	g.Balance()
	b.Outage()
	g.Balance()
	b.Restore()
	b.Pause(time.Second)
	g.Balance()
	if err := errors.Join(b.Leave(), a.Leave()); err != nil {
		t.Error(err)
	}
}

// A step that waits in vain fails the test, with the reason.
func TestGroupMessages(t *testing.T) {
	for name, c := range map[string]struct {
		o      partition.Options
		script func(g *electortest.Group)
		want   string
	}{
		"another number": {
			partition.Options{},
			func(g *electortest.Group) { g.Join("a", nil); g.Balance() },
			`after 3m30s the partitions of group "orders" are not where they should be: Run of "a" has returned: elector: run "orders" on memory://: invalid option: Partitions is 0`,
		},
		"not healthy": {
			partition.Options{Partitions: 8, Elector: elector.Options{Healthy: func(context.Context) error { return errors.New("the disk is full") }}},
			func(g *electortest.Group) { g.Join("a", nil); g.Balance() },
			`its members are [], and should be ["a"]`,
		},
		"wrong options": {
			partition.Options{Partitions: 8},
			func(g *electortest.Group) { g.Join("\x00", nil) },
			`invalid option: ID has a NUL byte`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{TB: t}
				g := electortest.NewGroup(f, "orders", &c.o)
				done := make(chan bool)
				go func() { defer close(done); c.script(g) }()
				<-done
				if !strings.Contains(f.message, c.want) {
					t.Errorf("the message is %q, want %q", f.message, c.want)
				}
			})
		})
	}
}

// The user's callbacks see what members do.
func TestGroupTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mutex sync.Mutex
		acquired := map[string]int{}
		g := electortest.NewGroup(t, "orders", &partition.Options{Partitions: 8, Trace: &partition.Trace{
			Acquired: func(_ context.Context, i partition.LeaseInfo) {
				mutex.Lock()
				acquired[i.ID]++
				mutex.Unlock()
				panic("a bug")
			},
		}})
		g.Join("a", nil)
		g.Balance()
		g.Join("b", nil)
		g.Balance()
		mutex.Lock()
		defer mutex.Unlock()
		if want := map[string]int{"a": 8, "b": 4}; !maps.Equal(acquired, want) {
			t.Errorf("acquired: %v, want %v", acquired, want)
		}
	})
}
