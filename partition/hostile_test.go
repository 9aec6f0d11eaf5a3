package partition

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// edit changes a record as a person or a restore does, with whatever CAS version it has.
func (f *fleet) edit(name string, change func(r *backends.Record)) {
	f.Helper()
	h := f.store.Handle()
	r, err := h.Load(context.Background(), name)
	if err != nil || !r.Exists() {
		f.Fatalf("%s: %v %v", name, r, err)
	}
	next := r
	change(&next)
	if _, err := h.Swap(context.Background(), name, r, next); err != nil {
		f.Fatal(err)
	}
}

// A worker of a lost slot that returns after ReleaseTimeout removes the slot of the
// NEXT lease: that lease stays valid, nothing ends it, and the partition is taken again.
func TestLateWorker(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		var mutex sync.Mutex
		var leases []*Lease
		linger := make(chan struct{})
		g, err := New(f.store.Handle(), "orders", &Options{Partitions: 1, Elector: elector.Options{ID: "a", TTL: f.ttl, ReleaseTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
				mutex.Lock()
				leases = append(leases, l)
				first := len(leases) == 1
				mutex.Unlock()
				<-ctx.Done()
				if first {
					<-linger // longer than ReleaseTimeout
				}
				return nil
			})
		}()
		time.Sleep(time.Minute)
		f.edit("orders.p.0", func(r *backends.Record) { r.Holder, r.Attempt.Sequence = "", r.Attempt.Sequence+1 })
		time.Sleep(8 * time.Minute) // an audit, ReleaseTimeout, and the partition is taken again
		mutex.Lock()
		if len(leases) != 2 || leases[0].Check() == nil || leases[1].Check() != nil {
			t.Fatalf("leases: %v", leases)
		}
		mutex.Unlock()
		close(linger)
		time.Sleep(10 * time.Second)
		mutex.Lock()
		var valid []string
		for _, l := range leases {
			if l.Check() == nil {
				valid = append(valid, l.String()+" for "+l.Remaining().String())
			}
		}
		mutex.Unlock()
		if len(valid) > 1 {
			t.Errorf("two valid leases in one process: %v", valid)
		}
		// And across processes.
		b := f.join("b", nil)
		_ = b
		cancel()
		<-done
		g.Close()
		f.ends(b)
	})
}

// A record that is missing is remembered over time in which this process does not look.
// The next deletion, hours later, is taken at once.
func TestDeletedTwice(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		slow := func(p *process) Work {
			return func(ctx context.Context, l *Lease) error {
				err := f.work(ctx, p, l)
				time.Sleep(8 * time.Second) // less than ReleaseTimeout; the lease is valid meanwhile
				return err
			}
		}
		link := &link{Backend: f.store.Handle()}
		g, err := New(link, "orders", &Options{Partitions: 2, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		a := &process{Group: g, link: link}
		ctx, cancelA := context.WithCancel(f.Context())
		done := make(chan error)
		go func() { done <- g.Run(ctx, slow(a)) }()
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute) // settled

		other, err := New(f.store.Handle(), "orders", &Options{Partitions: 2, Elector: elector.Options{ID: "b", TTL: f.ttl, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		b := &process{Group: other}
		visit := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(f.Context(), d)
			defer cancel()
			// Which partition moves to b is p.1: it was given last.
			if err := other.Run(ctx, func(ctx context.Context, l *Lease) error { return f.work(ctx, b, l) }); err != nil {
				t.Error(err)
			}
		}
		f.store.Delete("orders.p.1")
		visit(12 * time.Second) // b sees it missing
		f.settles(20*time.Minute, "a")
		time.Sleep(3 * time.Hour) // a owns it, audits it, all is well
		f.settles(time.Minute, "a")
		f.store.Delete("orders.p.1")
		visit(time.Minute) // f.work complains: a drains for 8 s, with a valid lease
		cancelA()
		<-done
		g.Close()
		other.Close()
	})
}

// audited points to a variable that audit and settle set again later: rule 1 counts
// from after the answer, and Check races with it.
func TestAuditSlow(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		slowly := &slowLink{link: link{Backend: f.store.Handle()}}
		g, err := New(slowly, "orders", &Options{Partitions: 2, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		var mutex sync.Mutex
		leases := map[int]*Lease{}
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
				mutex.Lock()
				leases[l.Partition()] = l
				mutex.Unlock()
				for ctx.Err() == nil {
					l.Check()
					time.Sleep(time.Millisecond)
				}
				return nil
			})
		}()
		time.Sleep(time.Minute)
		f.store.Delete("orders.p.1") // so that audit has something to write again
		slowly.mutex.Lock()
		slowly.slow = 2 * time.Second // the answer of each read of partitions
		slowly.sent = time.Time{}
		slowly.mutex.Unlock()
		time.Sleep(7 * time.Minute) // one audit
		slowly.mutex.Lock()
		sent := slowly.sent
		slowly.mutex.Unlock()
		mutex.Lock()
		l := leases[0]
		mutex.Unlock()
		ends := time.Now().Add(l.unaudited())
		if limit := sent.Add(g.auditHold()); ends.After(limit) {
			t.Errorf("the lease is valid until %v after the read that showed its record was sent, not %v", ends.Sub(sent), g.auditHold())
		}
		cancel()
		<-done
		g.Close()
	})
}

// A slowLink delays the answers of reads of partitions.
type slowLink struct {
	link
	slow time.Duration
	sent time.Time // the latest read of partitions
}

func (l *slowLink) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	outcomes := l.link.LoadMany(ctx, names)
	if slices.Contains(names, "orders.p.0") {
		l.mutex.Lock()
		slow := l.slow
		if slow > 0 && l.sent.IsZero() {
			l.sent = time.Now()
		}
		l.mutex.Unlock()
		time.Sleep(slow)
	}
	return outcomes
}

// While writes of partitions have no answer, each doubtful one is repeated by itself:
// Run does not notice that ctx has ended, nor that its seat is lost.
func TestLeaveWithoutAnswers(t *testing.T) {
	withFleet(t, 400, func(f *fleet) {
		hang := &hangLink{link: link{Backend: f.store.Handle()}}
		g, err := New(hang, "orders", &Options{Partitions: 400, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error { <-ctx.Done(); return nil })
		}()
		time.Sleep(20 * time.Second)
		cancel()
		start := time.Now()
		<-done
		if took := time.Since(start); took > 3*f.ttl {
			t.Errorf("Run returned %v after its context ended; ReleaseTimeout is %v, and it had no partition", took, g.options.ReleaseTimeout)
		}
		g.Close()
	})
}

// A hangLink answers no write of a partition.
type hangLink struct{ link }

func (l *hangLink) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	if strings.HasPrefix(changes[0].Name, "orders.p.") {
		<-ctx.Done()
		return backends.Outcomes(len(changes), backends.ErrUnavailable)
	}
	return l.link.SwapMany(ctx, changes)
}

func (l *hangLink) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if strings.HasPrefix(name, "orders.p.") {
		<-ctx.Done()
		return backends.Record{}, backends.ErrUnavailable
	}
	return l.link.Swap(ctx, name, prev, next)
}

// Run says at most ReleaseTimeout for settling and the workers.
func TestLeaveInTime(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		for _, alone := range []bool{true, false} {
			var b *process
			if !alone {
				b = f.join("b", nil)
				time.Sleep(time.Minute)
			}
			never := make(chan struct{})
			g, err := New(f.store.Handle(), "orders", &Options{Partitions: 2, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(f.Context())
			done := make(chan error)
			go func() {
				done <- g.Run(ctx, func(ctx context.Context, l *Lease) error { <-never; return nil })
			}()
			time.Sleep(2 * time.Minute)
			cancel()
			start := time.Now()
			<-done
			if took := time.Since(start); took > g.options.ReleaseTimeout+time.Second {
				t.Errorf("alone %v: Run returned after %v, ReleaseTimeout is %v", alone, took, g.options.ReleaseTimeout)
			}
			close(never)
			g.Close()
			if b != nil {
				f.ends(b)
			}
		}
	})
}

// A crashed member with another number, and no plan: no process can ever join, and Resize
// refuses to help.
func TestCrashedOtherNumber(t *testing.T) {
	withFleet(t, 10, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		a.link.set(true)
		f.store.Delete("orders.plan") // "start afresh"
		time.Sleep(time.Hour)
		f.partitions = 20
		b := f.join("b", nil)
		select {
		case err := <-b.done:
			resize := Resize(f.Context(), f.store.Handle(), "orders", 20, &elector.Options{TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)})
			t.Errorf("an hour after the crash: Run: %v\nResize: %v", err, resize)
		case <-time.After(5 * time.Minute):
		}
		a.stop()
		<-a.done
		b.Close()
		a.Close()
	})
}

// The plan is edited in place: those who have it keep the old table under its name,
// and those who come later have the new one.
func TestPlanEdited(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		a, b := f.join("a", nil), f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		time.Sleep(time.Minute)
		f.edit("orders.plan", func(r *backends.Record) {
			r.Value = strings.Replace(r.Value, " 0-1", " 1,0", 1)
		})
		time.Sleep(time.Minute)
		p, err := parsePlan(mustValue(f, "orders.plan"))
		if err != nil {
			t.Fatal(err)
		}
		owners, _ := f.owners()
		for n, seat := range p.table() {
			o, _ := a.Owner(f.Context(), n)
			if r, _ := f.store.Handle().Load(f.Context(), "orders.p."+string(rune('0'+n))); true {
				in, _ := rule.Holder(r)
				if in.Seat != seat {
					t.Errorf("partition %d: the plan in the store says seat %d, and after a minute %s in seat %d owns it (%v)", n, seat, o.ID, in.Seat, owners[n])
				}
			}
		}
		f.ends(a, b)
	})
}

func mustValue(f *fleet, name string) string {
	r, err := f.store.Handle().Load(context.Background(), name)
	if err != nil {
		f.Fatal(err)
	}
	return r.Value
}

// A value that no seat can have: New takes it, and the process never becomes a member.
func TestValue(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		_, err := New(f.store.Handle(), "orders", &Options{Partitions: 1, Elector: elector.Options{Value: "a\x00b"}})
		if !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("New with a NUL in the value: %v", err)
		}
	})
}

// One partition's record that is foreign at the start keeps the group founding, and
// then any record that is deleted is taken at once from its live owner.
func TestFoundingEnds(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		f.store.Put("orders.p.3", []byte(`{"somebody":"else's"}`))
		a := f.join("a", nil)
		time.Sleep(time.Hour)
		p, err := parsePlan(mustValue(f, "orders.plan"))
		if err != nil {
			t.Fatal(err)
		}
		if p.founding {
			t.Error("after an hour the group is founding")
		}
		f.ends(a)
	})
}

// A swap that is applied and answered with a conflict, as a driver that sends it twice
// does (see Backend.Swap: "the store holds another version"), while the plan moves on.
func TestConflictApplied(t *testing.T) {
	withFleet(t, 6, func(f *fleet) {
		adjust := func(o *Options) { o.Settle = time.Millisecond }
		a := f.join("a", adjust)
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		twice := &twiceLink{link: link{Backend: f.store.Handle()}}
		g, err := New(twice, "orders", &Options{Partitions: 6, Settle: time.Millisecond, Elector: elector.Options{ID: "b", TTL: f.ttl, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		b := &process{Group: g}
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error { return f.work(ctx, b, l) })
		}()
		for !twice.swapped() {
			time.Sleep(time.Millisecond)
		}
		c := f.join("c", adjust) // moves the plan while b's swap is under way
		time.Sleep(time.Hour)
		if owners, shares := f.owners(); len(owners) != 6 {
			t.Errorf("after an hour %v of 6 partitions have owners: %v", len(owners), shares)
			for n := range 6 {
				if owners[n] == "" {
					t.Logf("partition %d: %s", n, f.store.Get("orders.p."+string(rune('0'+n))))
				}
			}
		}
		cancel()
		<-done
		g.Close()
		f.ends(a, c)
	})
}

type twiceLink struct {
	link
	did bool
}

func (l *twiceLink) swapped() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.did
}

func (l *twiceLink) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	outcomes := l.link.SwapMany(ctx, changes)
	l.mutex.Lock()
	first := !l.did && strings.HasPrefix(changes[0].Name, "orders.p.")
	l.did = l.did || first
	l.mutex.Unlock()
	if first {
		time.Sleep(2 * time.Second)
		for i := range outcomes {
			if outcomes[i].Err == nil {
				outcomes[i] = backends.Outcome{Err: backends.ErrConflict}
			}
		}
	}
	return outcomes
}
