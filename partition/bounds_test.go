package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A singly is a connection to a store that takes one record in a request and pushes
// nothing, as GCS or S3.
type singly struct {
	handle *memory.Backend
	delay  time.Duration // of each request, on the way to the store
	load   func(ctx context.Context, name string) error
	swap   func(ctx context.Context, name string, prev, next backends.Record) error

	mutex sync.Mutex
}

// on sets what meets requests.
func (l *singly) on(load func(ctx context.Context, name string) error, swap func(ctx context.Context, name string, prev, next backends.Record) error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.load, l.swap = load, swap
}

func (l *singly) sleep(ctx context.Context) error {
	if l.delay == 0 {
		return nil
	}
	select {
	case <-time.After(l.delay):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", backends.ErrUnavailable, ctx.Err())
	}
}

func (l *singly) Load(ctx context.Context, name string) (backends.Record, error) {
	if err := l.sleep(ctx); err != nil {
		return backends.Record{}, err
	}
	l.mutex.Lock()
	load := l.load
	l.mutex.Unlock()
	if load != nil {
		if err := load(ctx, name); err != nil {
			return backends.Record{}, err
		}
	}
	return l.handle.Load(ctx, name)
}

func (l *singly) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if err := l.sleep(ctx); err != nil {
		return backends.Record{}, err
	}
	l.mutex.Lock()
	swap := l.swap
	l.mutex.Unlock()
	if swap != nil {
		if err := swap(ctx, name, prev, next); err != nil {
			return backends.Record{}, err
		}
	}
	return l.handle.Swap(ctx, name, prev, next)
}

func (l *singly) Describe() backends.Description { return backends.Description{Store: "singly://"} }
func (l *singly) Close() error                   { return nil }

func hangs(ctx context.Context) error { <-ctx.Done(); return backends.ErrUnavailable }

// joinSingly starts a process on a link of its own.
func (f *fleet) joinSingly(id string, l *singly, adjust func(*Options), slow time.Duration) *process {
	f.Helper()
	l.handle = f.store.Handle()
	o := &Options{Partitions: f.partitions, Elector: elector.Options{ID: id, TTL: f.ttl, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}}
	if adjust != nil {
		adjust(o)
	}
	g, err := New(l, "orders", o)
	if err != nil {
		f.Fatal(err)
	}
	p := &process{Group: g, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		p.done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
			err := f.work(ctx, p, l)
			time.Sleep(slow)
			return err
		})
	}()
	return p
}

// A group whose members take longer than half a renewal interval to read all seats never
// has a plan: each read is too old when it is complete, and the next one begins.
func TestSlowSeats(t *testing.T) {
	for _, c := range []struct {
		members int
		trip    time.Duration
	}{{34, 1300 * time.Millisecond}} { // 32 reads are under way at a time
		t.Run(fmt.Sprintf("%d members, %v a request", c.members, c.trip), func(t *testing.T) {
			withFleet(t, 2*c.members, func(f *fleet) {
				var all []*process
				for i := range c.members {
					all = append(all, f.joinSingly(fmt.Sprint(i), &singly{delay: c.trip}, nil, 0))
				}
				time.Sleep(4 * time.Minute) // they sit down one after the other
				if owners, shares := f.owners(); len(owners) != f.partitions || len(shares) != c.members {
					t.Errorf("after four minutes %d of %d partitions have owners, which are %d members; plan: %q", len(owners), f.partitions, len(shares), f.store.Get("orders.plan"))
				}
				f.ends(all...)
			})
		})
	}
}

// A store that takes one record in a request does not answer: Run does not return within
// ReleaseTimeout.
func TestLeave(t *testing.T) {
	for name, hang := range map[string]func(l *singly){
		"no write of a partition is answered": func(l *singly) {
			l.on(nil, func(ctx context.Context, name string, _, _ backends.Record) error {
				if strings.Contains(name, ".p.") {
					return hangs(ctx)
				}
				return nil
			})
		},
		"nothing is answered": func(l *singly) {
			time.AfterFunc(10*time.Second, func() {
				l.on(func(ctx context.Context, _ string) error { return hangs(ctx) }, func(ctx context.Context, _ string, _, _ backends.Record) error { return hangs(ctx) })
			})
			l.on(nil, func(ctx context.Context, name string, _, _ backends.Record) error {
				if strings.Contains(name, ".p.") {
					return hangs(ctx)
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 300, func(f *fleet) {
				l := &singly{}
				hang(l)
				p := f.joinSingly("a", l, nil, 0)
				time.Sleep(12 * time.Second)
				p.stop()
				start := time.Now()
				<-p.done
				if took := time.Since(start); took > p.options.ReleaseTimeout+5*time.Second {
					t.Errorf("Run returned %v after its context ended; ReleaseTimeout is %v", took, p.options.ReleaseTimeout)
				}
				p.Close()
			})
		})
	}
}

// "The lease stays valid until the worker has returned, for at most ReleaseTimeout": a
// draining lease is not audited, and ends after Hold(A).
func TestLongDrain(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		long := make(chan error, 2)
		g, err := New(f.store.Handle(), "orders", &Options{Partitions: 2, Elector: elector.Options{ID: "a", TTL: f.ttl, ReleaseTimeout: time.Hour, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
				<-ctx.Done()
				start := time.Now()
				for time.Since(start) < 30*time.Minute {
					if err := l.Check(); err != nil {
						long <- fmt.Errorf("after %v of %v: %w", time.Since(start), time.Hour, err)
						return nil
					}
					time.Sleep(time.Second)
				}
				long <- nil
				return nil
			})
		}()
		time.Sleep(time.Minute)
		b := f.join("b", nil)
		if err := <-long; err != nil {
			t.Errorf("a worker that drains has lost its lease: %v", err)
		}
		cancel()
		<-done
		g.Close()
		f.ends(b)
	})
}

// With StallTimeout a worker that fails is called again after up to a minute. Meanwhile
// nothing calls Check, and its member keeps its seat.
func TestStall(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		var mutex sync.Mutex
		tokens := map[elector.Token]int{}
		g, err := New(f.store.Handle(), "orders", &Options{Partitions: 1, Elector: elector.Options{ID: "a", TTL: f.ttl, StallTimeout: 20 * time.Second, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
				mutex.Lock()
				tokens[l.Token()]++
				mutex.Unlock()
				l.Check()
				return errors.New("it fails")
			})
		}()
		time.Sleep(10 * time.Minute)
		mutex.Lock()
		if len(tokens) != 1 {
			t.Errorf("a partition whose worker fails, but never hangs, was lost %d times in 10 minutes: %v", len(tokens)-1, tokens)
		}
		mutex.Unlock()
		cancel()
		<-done
		g.Close()
	})
}

// Reads of seats fail, and that of the plan does not: Run returns for good, with an error
// that says something else.
func TestSeatsUnread(t *testing.T) {
	for _, want := range []error{backends.ErrUnavailable, backends.ErrDenied} {
		t.Run(want.Error(), func(t *testing.T) {
			withFleet(t, 2, func(f *fleet) {
				l := &singly{}
				l.on(func(_ context.Context, name string) error {
					if strings.Contains(name, ".seat.") {
						return want
					}
					return nil
				}, nil)
				p := f.joinSingly("a", l, nil, 0)
				time.Sleep(30 * time.Second)
				l.on(nil, nil)
				select {
				case err := <-p.done:
					if !errors.Is(err, want) || errors.Is(want, backends.ErrUnavailable) {
						t.Errorf("Run returned %v", err)
					}
				case <-time.After(time.Minute):
				}
				p.stop()
				p.Close()
			})
		})
	}
}

// The store loses a release. Its process would find that at the time of an audit, but the
// plan gives the partition back and takes it away again, while its record cannot be read.
func TestReleaseForgotten(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		deaf := func(l *singly, on bool) {
			l.on(func(_ context.Context, n string) error {
				if on && n == "orders.p.1" {
					return backends.ErrUnavailable
				}
				return nil
			}, nil)
		}
		la, lb := &singly{}, &singly{}
		a := f.joinSingly("a", la, nil, 0)
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		old := f.store.Get("orders.p.1")
		deaf(lb, true)
		b := f.joinSingly("b", lb, nil, 0)
		for {
			if r, _ := f.store.Handle().Load(f.Context(), "orders.p.1"); r.Vacant() {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		f.store.Put("orders.p.1", old) // the release is lost
		deaf(la, true)
		f.ends(b)
		time.Sleep(20 * time.Second)
		c := f.join("c", nil)
		time.Sleep(20 * time.Second)
		deaf(la, false)
		time.Sleep(5 * time.Hour)
		if owners, shares := f.owners(); len(owners) != 2 {
			t.Errorf("after 5 hours, 20 times A, the owners are %v; record: %s", shares, f.store.Get("orders.p.1"))
		}
		f.ends(a, c)
	})
}

// A record cannot be read, or is missing, for longer than its owner takes to give the
// partition up and to look again. Then it names the owner again, which is still there.
func TestReleaseHidden(t *testing.T) {
	for name, hide := range map[string]func(f *fleet, record string){
		"a newer version": func(f *fleet, record string) {
			r, err := f.store.Handle().Load(f.Context(), record)
			barred := r
			barred.Extensions, _ = r.Extensions.With("c_newer", "1")
			if _, refused := f.store.Handle().Swap(f.Context(), record, r, barred); err != nil || refused != nil {
				f.Fatal(err, refused)
			}
		},
		"another format": func(f *fleet, record string) { f.store.Put(record, []byte("{}")) },
		"missing":        func(f *fleet, record string) { f.store.Delete(record) },
	} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 2, func(f *fleet) {
				a := f.join("a", nil)
				f.settles(time.Minute, "a")
				for !strings.Contains(mustValue(f, "orders.plan"), "settled") {
					time.Sleep(time.Second / 10)
				}
				old := map[string][]byte{}
				for _, record := range []string{"orders.p.0", "orders.p.1"} {
					old[record] = f.store.Get(record)
					hide(f, record)
				}
				b := f.join("b", nil)
				time.Sleep(time.Duration(a.audit.Load()) * 9 / 10)
				for record, old := range old {
					f.store.Put(record, old)
				}
				time.Sleep(5 * time.Hour)
				if owners, shares := f.owners(); len(owners) != 2 {
					t.Errorf("after 5 hours the owners are %v; records: %s, %s", shares, f.store.Get("orders.p.0"), f.store.Get("orders.p.1"))
				}
				f.ends(a, b)
			})
		})
	}
}

// A client that ignores its context: Elector.Close gives it up, Group.Close blocks for
// ever.
func TestClose(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		never := make(chan struct{})
		l := &singly{}
		p := f.joinSingly("a", l, nil, 0)
		f.settles(time.Minute, "a")
		l.on(func(context.Context, string) error { <-never; return nil }, nil)
		time.Sleep(10 * time.Second)
		closed := make(chan error, 1)
		go func() { closed <- p.Close() }()
		select {
		case <-closed:
		case <-time.After(time.Hour):
			t.Error("Close has not returned after an hour")
		}
		close(never)
		p.stop()
		<-p.done
	})
}

// A member does not know the record of a seat, which others know: they write plans
// against each other for ever.
func TestForeignSeatFlaps(t *testing.T) {
	withFleet(t, 12, func(f *fleet) {
		old := &singly{}
		old.on(func(_ context.Context, name string) error {
			if name == "orders.seat.2" {
				return backends.ErrForeignRecord
			}
			return nil
		}, nil)
		a := f.joinSingly("a", old, nil, 0)
		time.Sleep(10 * time.Second)
		b, c := f.join("b", nil), f.join("c", nil)
		time.Sleep(5 * time.Minute)
		f.mutex.Lock()
		before := f.starts
		f.mutex.Unlock()
		time.Sleep(10 * time.Minute)
		f.mutex.Lock()
		if n := f.starts - before; n > 0 {
			t.Errorf("in 10 minutes without a change of members %d partitions moved", n)
		}
		f.mutex.Unlock()
		f.ends(a, b, c)
	})
}

// A member that owns nothing keeps its seat, whatever StallTimeout is.
func TestStallIdle(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		b := f.join("b", func(o *Options) { o.Elector.StallTimeout = 500 * time.Millisecond })
		time.Sleep(20 * time.Second)
		r, _ := f.store.Handle().Load(f.Context(), "orders.seat.1")
		time.Sleep(10 * time.Minute)
		s, _ := f.store.Handle().Load(f.Context(), "orders.seat.1")
		if r.Attempt.Nonce != s.Attempt.Nonce {
			t.Errorf("the seat of a member without partitions was lost: %s, then %s", r.Attempt.Nonce, s.Attempt.Nonce)
		}
		f.ends(a, b)
	})
}

// All workers have returned at once, and a write stays in doubt: Run logs that workers
// have not returned, and does not release the seat.
func TestReturned(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			withFleet(t, 8, func(f *fleet) {
				l := &singly{}
				l.on(nil, func(_ context.Context, name string, _, next backends.Record) error {
					if name == "orders.p.1" {
						return backends.ErrUnavailable
					}
					return nil
				})
				var log strings.Builder
				p := f.joinSingly("a", l, func(o *Options) {
					o.Elector.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
				}, 0)
				time.Sleep(time.Minute)
				p.stop()
				<-p.done
				p.Close()
				r, _ := f.store.Handle().Load(context.Background(), "orders.seat.0")
				if strings.Contains(log.String(), "workers of the group have not returned") || !r.Vacant() {
					t.Errorf("vacant: %v; %s", r.Vacant(), log.String())
				}
			})
		})
	}
}

// Observe goes on after Close.
func TestObserve(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer close(ended)
			for range a.Observe(ctx) {
			}
		}()
		time.Sleep(time.Second)
		a.stop()
		<-a.done
		a.Close()
		select {
		case <-ended:
		case <-time.After(time.Hour):
			t.Error("an hour after Close Observe still reads the store")
		}
		cancel()
		<-ended
	})
}

// Members and Close at the same time, under the race detector: the one adds to a WaitGroup
// that the other waits for.
func TestCloseAndRead(t *testing.T) {
	for range 200 {
		g, err := New(memory.NewStore().Handle(), "orders", &Options{Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					g.Members(context.Background())
				}
			})
		}
		all.Go(func() { g.Close() })
		all.Wait()
	}
}

// A process with many partitions leaves. It tells 300 workers to stop in each interval, so
// that the last ones have no time: their leases end while they drain, or before.
func TestLeaveMany(t *testing.T) {
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone %v", alone), func(t *testing.T) {
			withFleet(t, 3000, func(f *fleet) {
				g, err := New(f.store.Handle(), "orders", &Options{Partitions: 3000, Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}})
				if err != nil {
					t.Fatal(err)
				}
				var mutex sync.Mutex
				orderly, lost := 0, 0
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error)
				go func() {
					done <- g.Run(ctx, func(ctx context.Context, l *Lease) error {
						<-ctx.Done()
						time.Sleep(4 * time.Second) // ReleaseTimeout is 15 s
						mutex.Lock()
						defer mutex.Unlock()
						if l.Check() != nil {
							lost++
						} else {
							orderly++
						}
						return nil
					})
				}()
				time.Sleep(time.Minute)
				var b *process
				if !alone {
					b = f.join("b", nil)
					time.Sleep(2 * time.Minute)
				}
				mutex.Lock()
				orderly, lost = 0, 0
				mutex.Unlock()
				cancel()
				<-done
				g.Close()
				time.Sleep(time.Minute)
				if lost > 0 {
					t.Errorf("of %d workers, which need 4 seconds to drain, %d lost their lease before they had", orderly+lost, lost)
				}
				if b != nil {
					f.ends(b)
				}
			})
		})
	}
}
