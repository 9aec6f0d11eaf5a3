package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// late keeps the first write of a record under way, and lets no read of it through. arrive
// lets the write arrive.
func late(l *singly, name string) (taken <-chan struct{}, arrive func() error, hear func()) {
	under := make(chan struct{})
	var mutex sync.Mutex
	var c *backends.Change
	l.on(func(_ context.Context, n string) error {
		mutex.Lock()
		defer mutex.Unlock()
		if n == name && c != nil {
			return backends.ErrUnavailable
		}
		return nil
	}, func(_ context.Context, n string, prev, next backends.Record) error {
		mutex.Lock()
		defer mutex.Unlock()
		if n != name || c != nil {
			return nil
		}
		c = &backends.Change{Name: n, Prev: prev, Next: next}
		close(under)
		return backends.ErrUnavailable
	})
	return under, func() error {
		_, err := l.handle.Swap(context.Background(), name, c.Prev, c.Next)
		return err
	}, func() { l.on(nil, nil) }
}

// inDoubt starts a member whose creation of partition 1 stays under way until arrive is
// called, and which cannot read that record until hear is.
func inDoubt(f *fleet) (a *process, arrive func() error, hear func()) {
	today()
	l := &singly{}
	taken, arrive, hear := late(l, "orders.p.1")
	a = f.joinSingly("a", l, nil, 0)
	<-taken
	return a, arrive, hear
}

// A creation is applied late, after a record that another member has created in between
// was deleted. It names a living member, which does not know: no process owns the partition.
func TestLateCreationOrphan(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		a, arrive, hear := inDoubt(f)
		start := time.Now()
		b := f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		hear()
		for !strings.Contains(mustValue(f, "orders.plan"), "settled") {
			time.Sleep(time.Second / 10)
		}
		f.store.Delete("orders.p.1")
		if err := arrive(); err != nil {
			t.Fatal(err)
		}
		t.Logf("it arrives %v late", time.Since(start))
		time.Sleep(5 * time.Hour)
		if owners, shares := f.owners(); len(owners) != 2 {
			t.Errorf("after 5 hours the owners are %v; record: %s", shares, f.store.Get("orders.p.1"))
		}
		f.ends(a, b)
	})
}

// A creation without an answer is read, or repeated, after another member has owned the
// partition and its record has gone, unseen. The lease has a token greater than that
// member's: f.work complains.
func TestCreationInDoubt(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		t.Run(fmt.Sprintf("it arrives: %v", arrives), func(t *testing.T) {
			withFleet(t, 2, func(f *fleet) {
				a, arrive, hear := inDoubt(f)
				b := f.join("b", nil)
				f.settles(time.Minute, "a", "b")
				f.ends(b)
				time.Sleep(5 * time.Second) // a has seen that the plan gives it the partition again
				f.store.Delete("orders.p.1")
				if arrives {
					if err := arrive(); err != nil {
						t.Fatal(err)
					}
				}
				hear()
				f.settles(time.Minute, "a")
				f.ends(a)
			})
		})
	}
}

// The plan gives a partition to another member while its creation has no answer: once that is
// read, the other one has the partition soon, and not after A.
func TestCreationMovesOn(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		a, arrive, hear := inDoubt(f)
		if err := arrive(); err != nil {
			t.Fatal(err)
		}
		b := f.join("b", nil)
		time.Sleep(20 * time.Second) // the plan gives it to b
		hear()
		f.settles(time.Minute, "a", "b")
		f.ends(a, b)
	})
}

// A creation is applied late, and the process that has sent it leaves: it believes its
// creation, while another process has a valid lease.
func TestLateCreationTwoOwners(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		today()
		b := f.join("b", nil)
		time.Sleep(time.Second)
		l := &singly{}
		taken, arrive, hear := late(l, "orders.p.1")
		a := f.joinSingly("a", l, func(o *Options) { o.Elector.ReleaseTimeout = time.Minute }, 0)
		<-taken
		start := time.Now()
		a.stop()
		f.settles(30*time.Second, "b")
		for !strings.Contains(mustValue(f, "orders.plan"), "settled") {
			time.Sleep(time.Second / 10)
		}
		f.store.Delete("orders.p.1")
		if err := arrive(); err != nil {
			t.Fatal(err)
		}
		t.Logf("it arrives %v late", time.Since(start))
		hear()
		time.Sleep(10 * time.Second) // f.work complains
		f.ends(a, b)
	})
}

// "One that was deleted meanwhile is written as vacant, while rule 1 would still hold": a
// write without an answer is repeated later too.
func TestLateVacancy(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		today()
		l := &singly{}
		a := f.joinSingly("a", l, nil, 0)
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		var mutex sync.Mutex
		cut := false
		l.on(func(_ context.Context, n string) error {
			mutex.Lock()
			defer mutex.Unlock()
			if cut && n == "orders.p.1" {
				return backends.ErrUnavailable
			}
			return nil
		}, func(_ context.Context, n string, prev, _ backends.Record) error {
			mutex.Lock()
			defer mutex.Unlock()
			if n == "orders.p.1" && !prev.Exists() {
				cut = true
				return backends.ErrUnavailable
			}
			return nil
		})
		f.store.Delete("orders.p.1")
		b := f.joinSingly("b", &singly{}, nil, 8*time.Second) // its workers drain slowly
		f.settles(20*time.Minute, "a", "b")                   // b has waited for A
		c := f.join("c", nil)
		time.Sleep(time.Minute)
		f.store.Delete("orders.p.1")
		l.on(nil, nil)
		time.Sleep(10 * time.Second)
		if r := f.store.Get("orders.p.1"); r != nil {
			t.Errorf("a has written a vacancy long after Hold(A): %s", r)
		}
		b.stop() // c takes what is vacant; f.work complains
		time.Sleep(time.Minute)
		f.ends(a, b, c)
	})
}

// today makes the time of day one that tokens follow.
func today() { time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) }

// A plan is created late, after the group's plan was deleted: it is founding, and a record
// that is missing is taken from its owner at once.
func TestLateFoundingPlan(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		today()
		b := f.joinSingly("b", &singly{}, func(o *Options) { o.Settle = 20 * time.Second }, 8*time.Second)
		time.Sleep(10 * time.Second)
		l := &singly{}
		taken, arrive, hear := late(l, "orders.plan")
		c := f.joinSingly("c", l, func(o *Options) { o.Settle = time.Millisecond }, 0)
		<-taken
		hear()
		start := time.Now()
		c.stop()
		<-c.done
		c.Close()
		f.settles(2*time.Minute, "b")
		for !strings.Contains(mustValue(f, "orders.plan"), "settled") {
			time.Sleep(time.Second / 10)
		}
		t.Logf("plan: %s", mustValue(f, "orders.plan"))
		d := f.joinSingly("d", &singly{}, func(o *Options) { o.Settle = 20 * time.Second }, 0)
		time.Sleep(15 * time.Second) // d is ready
		f.store.Delete("orders.p.2")
		f.store.Delete("orders.p.3")
		f.store.Delete("orders.plan")
		if err := arrive(); err != nil {
			t.Fatal(err)
		}
		t.Logf("it arrives %v late: %s", time.Since(start), mustValue(f, "orders.plan"))
		time.Sleep(time.Minute)
		t.Logf("plan: %s", mustValue(f, "orders.plan"))
		f.ends(b, d)
	})
}

// A creation of a member that is gone is applied late, after the record was deleted that
// its successor has created. It names an incarnation that is over: a newcomer takes the
// partition at once, while the successor has a valid lease. Without the late write it would
// have waited for A.
func TestLateCreationOfTheDead(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		t.Run(fmt.Sprintf("it arrives: %v", arrives), func(t *testing.T) {
			withFleet(t, 2, func(f *fleet) {
				today()
				b := f.joinSingly("b", &singly{}, nil, 8*time.Second)
				time.Sleep(time.Second)
				l := &singly{}
				taken, arrive, _ := late(l, "orders.p.1")
				a := f.joinSingly("a", l, nil, 0)
				<-taken
				start := time.Now()
				down := errors.New("down")
				l.on(func(context.Context, string) error { return down }, func(context.Context, string, backends.Record, backends.Record) error { return down }) // it crashes
				a.stop()
				f.settles(time.Minute, "b")
				for !strings.Contains(mustValue(f, "orders.plan"), "settled") {
					time.Sleep(time.Second / 10)
				}
				f.store.Delete("orders.p.1")
				if arrives {
					if err := arrive(); err != nil {
						t.Fatal(err)
					}
					t.Logf("it arrives %v late", time.Since(start))
				}
				c := f.join("c", nil)
				time.Sleep(30 * time.Second) // f.work complains
				f.ends(a, b, c)
			})
		})
	}
}

// The same, while the worker of the lease that is over has not returned.
func TestLateVacancyLingers(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		today()
		linger := make(chan struct{})
		l := &singly{handle: f.store.Handle()}
		g, err := New(l, "orders", &Options{Partitions: 2, Elector: elector.Options{ID: "a", TTL: f.ttl, ReleaseTimeout: time.Hour, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		a := &process{Group: g, done: make(chan error, 1)}
		ctx, stop := context.WithCancel(context.Background())
		a.stop = stop
		go func() {
			a.done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
				err := f.work(ctx, a, l)
				if l.Partition() == 1 {
					<-linger
				}
				return err
			})
		}()
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		var cut atomic.Bool
		l.on(func(_ context.Context, n string) error {
			if cut.Load() && n == "orders.p.1" {
				return backends.ErrUnavailable
			}
			return nil
		}, func(_ context.Context, n string, prev, _ backends.Record) error {
			if n == "orders.p.1" && !prev.Exists() {
				cut.Store(true)
				return backends.ErrUnavailable
			}
			return nil
		})
		f.store.Delete("orders.p.1")
		b := f.joinSingly("b", &singly{}, nil, 8*time.Second) // its workers drain slowly
		f.settles(20*time.Minute, "a", "b")                   // b has waited for A
		c := f.join("c", nil)
		time.Sleep(time.Minute)
		f.store.Delete("orders.p.1")
		l.on(nil, nil)
		time.Sleep(10 * time.Second)
		close(linger)
		time.Sleep(time.Second)
		if r := string(f.store.Get("orders.p.1")); r != "" && !strings.Contains(r, "t_new") {
			t.Errorf("a has confirmed a record long after Hold(A): %s", r)
		}
		b.stop() // c takes what is vacant; f.work complains
		time.Sleep(time.Minute)
		f.ends(a, b, c)
	})
}

// The plan and a vacant seat are deleted while no member has a lease: the seat of a dead
// member lies behind the gap, and is replaced nevertheless.
func TestSeatBehindGap(t *testing.T) {
	withFleet(t, 6, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		b := f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		c := f.join("c", nil)
		f.settles(time.Minute, "a", "b", "c")
		f.ends(b)
		f.settles(time.Minute, "a", "c")
		a.link.set(true)
		c.link.set(true)
		time.Sleep(2 * f.ttl)
		f.store.Delete("orders.seat.1")
		f.store.Delete("orders.plan")
		a.link.set(false)
		f.settles(3*time.Minute, "a")
		f.ends(a)
		c.stop()
		<-c.done
	})
}

// The plan is deleted, and so are the seats of the deputies, which crash: newcomers have
// these seats, and wait for those that know the plan. One that was no deputy writes it anew.
func TestPlanAndDeputiesDeleted(t *testing.T) {
	withFleet(t, 8, func(f *fleet) {
		deputies := []*process{f.join("a", nil), f.join("b", nil), f.join("c", nil)}
		f.settles(time.Minute, "a", "b", "c")
		d := f.join("d", nil)
		f.settles(time.Minute, "a", "b", "c", "d")
		for i, p := range deputies {
			p.link.set(true)
			p.stop()
			defer func() { <-p.done; p.Close() }()
			f.store.Delete(fmt.Sprintf("orders.seat.%d", i))
		}
		f.store.Delete("orders.plan")
		all := []*process{d, f.join("e", nil), f.join("f", nil), f.join("g", nil)}
		f.settles(5*time.Minute, "d", "e", "f", "g")
		f.ends(all...)
	})
}

// A record that was written where there was none, and is not confirmed, does not make its owner's
// lease last: another process may have seen it before, and waits for A from then on.
func TestAuditUnconfirmed(t *testing.T) {
	g, err := New(memory.NewStore().Handle(), "orders", &Options{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s, x := &sitting{group: g}, &slot{state: held, lease: &Lease{group: g}}
	first, later := clock.Mark(g.clock), clock.Mark(g.clock)
	x.lease.audited.Store(&first)
	if s.audited(x, backends.Record{Extensions: rule.Created("")}, &later); x.lease.audited.Load() != &first {
		t.Error("a record that is not confirmed renews the lease")
	}
	if s.audited(x, backends.Record{}, &later); x.lease.audited.Load() != &later {
		t.Error("a confirmed record does not renew the lease")
	}
}
