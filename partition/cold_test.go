package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// A journal keeps what is logged.
type journal struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.text.Write(p)
}

func (j *journal) count(text string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return strings.Count(j.text.String(), text)
}

// A store that refuses writes of some records, as one with too few permissions, is named in
// the log.
func TestRefusedWrites(t *testing.T) {
	for _, name := range []string{"orders.p.", "orders.plan"} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 4, func(f *fleet) {
				j := &journal{}
				l := &singly{}
				l.on(nil, func(_ context.Context, n string, _, _ backends.Record) error {
					if strings.HasPrefix(n, name) {
						return fmt.Errorf("%w: user may not write %s", backends.ErrDenied, n)
					}
					return nil
				})
				a := f.joinSingly("a", l, func(o *Options) {
					o.Elector.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(j, f.output()), nil))
				}, 0)
				time.Sleep(5 * time.Minute)
				if n := j.count("may not write"); n < 1 || n > 20 {
					t.Errorf("after five minutes the log has the store's refusal %d times", n)
				}
				l.on(nil, nil)
				f.settles(time.Minute, "a")
				f.ends(a)
			})
		})
	}
}

// A store that refuses everything for a while ends no member that has had a seat, and no
// observer that has seen the group.
func TestRefusedForAWhile(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		j := &journal{}
		la, lb := &singly{}, &singly{}
		logs := func(o *Options) { o.Elector.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(j, f.output()), nil)) }
		a := f.joinSingly("a", la, logs, 0)
		b := f.joinSingly("b", lb, logs, 0)
		f.settles(time.Minute, "a", "b")
		ctx, stop := context.WithCancel(f.Context())
		observed := make(chan error, 1)
		var pairs atomic.Int64
		go func() {
			for _, err := range b.Observe(ctx) {
				if err != nil {
					observed <- err
					return
				}
				pairs.Add(1)
			}
		}()
		time.Sleep(time.Minute)
		for _, l := range []*singly{la, lb} {
			l.on(func(context.Context, string) error { return backends.ErrDenied },
				func(context.Context, string, backends.Record, backends.Record) error { return backends.ErrDenied })
		}
		time.Sleep(5 * time.Minute)
		if owners, _ := f.owners(); len(owners) != 0 {
			t.Errorf("%d partitions have owners, although the store refuses everything", len(owners))
		}
		if n := j.count("finds no seat"); n != 2 {
			t.Errorf("after five minutes the log of two members says %d times that they find no seat", n)
		}
		before := pairs.Load()
		la.on(nil, nil)
		lb.on(nil, nil)
		f.settles(2*time.Minute, "a", "b")
		f.ends(a)
		time.Sleep(time.Minute)
		if pairs.Load() == before {
			t.Error("the observer has not seen that a member left")
		}
		stop()
		if err := <-observed; !errors.Is(err, context.Canceled) {
			t.Errorf("Observe ends with %v", err)
		}
		f.ends(b)
	})
}

// A store that answers each write of a partition with a conflict, although its record does
// not change, is asked again after pauses.
func TestRefusedForEver(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		l := &singly{delay: time.Millisecond}
		var asked atomic.Int64
		l.on(nil, func(_ context.Context, n string, _, _ backends.Record) error {
			if strings.HasPrefix(n, "orders.p.") {
				asked.Add(1)
				return backends.ErrConflict
			}
			return nil
		})
		a := f.joinSingly("a", l, nil, 0)
		time.Sleep(time.Minute)
		if n := asked.Load(); n > 400 {
			t.Errorf("%d writes of 4 partitions in a minute", n)
		}
		l.on(nil, nil)
		f.settles(time.Minute, "a")
		f.ends(a)
	})
}

// Owners shows the owner of a partition that a newcomer takes while Owners reads.
func TestOwnersNewcomer(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		l := &singly{handle: f.store.Handle()}
		looker, err := New(l, "orders", &Options{Elector: elector.Options{TTL: time.Hour, RequestTimeout: 10 * time.Minute, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		var b *process
		l.on(func(_ context.Context, n string) error {
			switch {
			case n == "orders.p.0":
				b = f.join("b", nil)
				f.settles(time.Minute, "a", "b")
			case strings.HasPrefix(n, "orders.p."):
				time.Sleep(time.Minute) // until b owns its share
			}
			return nil
		}, nil)
		owners, err := looker.Owners(f.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range owners {
			if o.ID == "" {
				t.Errorf("partition %d: %+v", o.Partition, o)
			}
		}
		looker.Close()
		f.ends(a, b)
	})
}

// A drained member that has left the group is not drained when it comes back.
func TestDrainedLeaves(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		a, b := f.join("a", nil), f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		if err := a.DrainMember(f.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		f.settles(time.Minute, "a")
		f.ends(b)
		time.Sleep(time.Minute)
		b = f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		f.ends(a, b)
	})
}

// A drained member that is the only one left.
func TestDrainedAlone(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		a, b := f.join("a", nil), f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		if err := a.DrainMember(f.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		f.settles(time.Minute, "a")
		f.ends(a)
		f.settles(2*time.Minute, "b")
		f.ends(b)
	})
}

// A deafLink ignores contexts while it is deaf.
type deafLink struct {
	link
	deaf chan struct{}
	on   atomic.Bool
}

func (l *deafLink) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	if l.on.Load() {
		<-l.deaf
	}
	return l.link.LoadMany(ctx, names)
}

func (l *deafLink) Load(ctx context.Context, name string) (backends.Record, error) {
	if l.on.Load() {
		<-l.deaf
	}
	return l.link.Load(ctx, name)
}

func (l *deafLink) SwapMany(ctx context.Context, c []backends.Change) []backends.Outcome {
	if l.on.Load() {
		<-l.deaf
	}
	return l.link.SwapMany(ctx, c)
}

func (l *deafLink) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if l.on.Load() {
		<-l.deaf
	}
	return l.link.Swap(ctx, name, prev, next)
}

// A backend that ignores its contexts keeps a bounded number of requests.
func TestDeafBackend(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		l := &deafLink{link: link{Backend: f.store.Handle()}, deaf: make(chan struct{})}
		g, err := New(l, "orders", &Options{Partitions: 4, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error { <-ctx.Done(); return nil })
		}()
		time.Sleep(time.Minute)
		before := runtime.NumGoroutine()
		l.on.Store(true)
		time.Sleep(time.Hour)
		if n := runtime.NumGoroutine() - before; n > 100 {
			t.Errorf("after an hour %d goroutines more", n)
		}
		l.on.Store(false)
		close(l.deaf)
		cancel()
		<-done
		g.Close()
	})
}

// Resize does not wait for ever for a seat that a newer version has written.
func TestResizeNewerSeat(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		f.edit("orders.seat.0", func(r *backends.Record) { r.Extensions, _ = r.Extensions.With("c_new", "1") })
		time.Sleep(time.Minute)
		a.stop()
		<-a.done
		f.edit("orders.seat.0", func(r *backends.Record) {
			r.Extensions, _ = r.Extensions.With("c_new", "1")
			r.Holder, r.Token = "newer", r.Token+1
		})
		ctx, cancel := context.WithTimeout(f.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		err := Resize(ctx, f.store.Handle(), "orders", 8, &elector.Options{TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, elector.ErrHeld) || time.Since(start) > time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		a.Close()
	})
}

// A smallLink fails each request that has several records of partitions.
type smallLink struct {
	link
	err error
}

func (l *smallLink) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	if len(names) > 1 && strings.HasPrefix(names[0], "orders.p.") {
		return backends.Outcomes(len(names), l.err)
	}
	return l.link.LoadMany(ctx, names)
}

func (l *smallLink) SwapMany(ctx context.Context, c []backends.Change) []backends.Outcome {
	if len(c) > 1 {
		return backends.Outcomes(len(c), l.err)
	}
	return l.link.SwapMany(ctx, c)
}

// A store that takes single requests and fails large ones gets single ones.
func TestLargeRequestsFail(t *testing.T) {
	for _, cause := range []error{backends.ErrUnavailable, backends.ErrDenied} {
		t.Run(cause.Error(), func(t *testing.T) {
			withFleet(t, 400, func(f *fleet) {
				l := &smallLink{link: link{Backend: f.store.Handle()}, err: cause}
				g, err := New(l, "orders", &Options{Partitions: 400, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}})
				if err != nil {
					t.Fatal(err)
				}
				a := &process{Group: g, done: make(chan error, 1)}
				ctx, stop := context.WithCancel(context.Background())
				a.stop = stop
				go func() {
					a.done <- g.Run(ctx, func(ctx context.Context, l *Lease) error { return f.work(ctx, a, l) })
				}()
				time.Sleep(5 * time.Minute)
				if owners, _ := f.owners(); len(owners) != 400 {
					t.Errorf("%d of 400 partitions have owners", len(owners))
				}
				f.ends(a)
			})
		})
	}
}

// A record that a hand puts back, to a former lease of a member that has seen the newer one by
// Owner or Owners, is no evidence that this member may own the partition again.
func TestPutBackAfterOwner(t *testing.T) {
	for _, looks := range []func(ctx context.Context, g *Group) error{
		func(ctx context.Context, g *Group) error { _, err := g.Owner(ctx, 0); return err },
		func(ctx context.Context, g *Group) error { _, err := g.Owners(ctx); return err },
	} {
		withFleet(t, 1, func(f *fleet) {
			b := f.join("b", nil)
			f.settles(time.Minute, "b")
			former, err := f.store.Handle().Load(f.Context(), "orders.p.0")
			if err != nil {
				t.Fatal(err)
			}
			a := f.joinSingly("a", &singly{}, nil, 20*time.Second) // its worker drains slowly
			time.Sleep(time.Minute)
			if err := f.drains(b, "b", "a"); err != nil {
				t.Fatal(err)
			}
			if err := looks(f.Context(), b.Group); err != nil {
				t.Fatal(err)
			}
			f.edit("orders.p.0", func(r *backends.Record) {
				version := r.Version
				*r = former
				r.Version = version
			})
			if err := b.UndrainMember(f.Context(), "b"); err != nil { // and the plan gives it back
				t.Fatal(err)
			}
			for range 200 { // owners checks that no partition has two
				f.owners()
				time.Sleep(100 * time.Millisecond)
			}
			f.settles(time.Hour, "b")
			f.ends(a, b)
		})
	}
}

// drains drains a member, and waits until another one owns all.
func (f *fleet) drains(by *process, id string, next string) error {
	if err := by.DrainMember(f.Context(), id); err != nil {
		return err
	}
	f.settles(time.Minute, next)
	return nil
}
