package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// gaps is how long a partition has no owner at most, until stop.
func (f *fleet) gaps() (stop func() time.Duration) {
	done, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		last := map[int]time.Time{}
		gap := time.Duration(0)
		for n := range f.partitions {
			last[n] = time.Now()
		}
		for {
			owners, _ := f.owners()
			for n := range f.partitions {
				if owners[n] != "" {
					last[n] = time.Now()
				} else {
					gap = max(gap, time.Since(last[n]))
				}
			}
			select {
			case <-done:
				most <- gap
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() time.Duration { close(done); return <-most }
}

// A partition that moves has no owner for a quarter of a renewal interval at most, also
// where the plan is polled.
func TestMoveGap(t *testing.T) {
	for _, kind := range []string{"pushed", "polled", "singly"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			worst := map[string]time.Duration{}
			for phase := range 12 {
				withFleet(t, 16, func(f *fleet) {
					a := f.joinBy(kind, "a")
					time.Sleep(time.Duration(phase) * 631 * time.Millisecond)
					b := f.joinBy(kind, "b")
					f.settles(time.Minute, "a", "b")
					time.Sleep(30*time.Second + time.Duration(phase)*397*time.Millisecond)
					stop := f.gaps()
					a.stop()
					<-a.done
					f.settles(time.Minute, "b")
					worst["leave"] = max(worst["leave"], stop())
					stop = f.gaps()
					c := f.joinBy(kind, "c")
					f.settles(time.Minute, "b", "c")
					worst["join"] = max(worst["join"], stop())
					a.done <- nil
					f.ends(a, b, c)
				})
			}
			t.Log(worst)
			for what, gap := range worst {
				if gap > 4500*time.Millisecond/4+50*time.Millisecond {
					t.Errorf("at a %s a partition has no owner for %v", what, gap)
				}
			}
		})
	}
}

// What docs/partitions.md says of times is kept: of the first start, of a crash, and of a lone
// member that was killed and started again.
func TestTimes(t *testing.T) {
	for kind, most := range map[string]map[string]time.Duration{
		"pushed": {"start of one": 5 * time.Second, "start of four": 10 * time.Second, "crash": 31 * time.Second, "lone restart": 20 * time.Second},
		"polled": {"start of one": 5 * time.Second, "start of four": 10 * time.Second, "crash": 31 * time.Second, "lone restart": 20 * time.Second},
		"singly": {"start of one": 5 * time.Second, "start of four": 10 * time.Second, "crash": 31 * time.Second, "lone restart": 20 * time.Second},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			worst := map[string]time.Duration{}
			took := func(what string, since time.Time) { worst[what] = max(worst[what], time.Since(since)) }
			for phase := range 10 {
				later := time.Duration(phase) * 457 * time.Millisecond
				withFleet(t, 16, func(f *fleet) {
					begun := time.Now()
					all := []*process{f.joinBy(kind, "a"), f.joinBy(kind, "b"), f.joinBy(kind, "c"), f.joinBy(kind, "d")}
					f.settles(time.Minute, "a", "b", "c", "d")
					took("start of four", begun)
					time.Sleep(20*time.Second + later)
					dies := all[phase%4]
					dies.link.set(true)
					begun = time.Now()
					for { // without the dead one's leases
						owners, _ := f.owners()
						if len(owners) == f.partitions && !slices.Contains(slices.Collect(maps.Values(owners)), dies.ID()) {
							break
						}
						time.Sleep(50 * time.Millisecond)
					}
					took("crash", begun)
					f.ends(all...)
				})
				withFleet(t, 16, func(f *fleet) {
					begun := time.Now()
					a := f.joinBy(kind, "a")
					f.settles(time.Minute, "a")
					took("start of one", begun)
					time.Sleep(20*time.Second + later)
					a.link.set(true)
					a.stop()
					begun = time.Now()
					b := f.joinBy(kind, "b")
					f.settles(time.Minute, "b")
					took("lone restart", begun)
					f.ends(a, b)
				})
			}
			t.Log(worst)
			for what, d := range worst {
				if d > most[what] {
					t.Errorf("%s: %v, and the page says %v", what, d, most[what])
				}
			}
		})
	}
}

// A worker that hangs loses its partition, which is worked on again, and its member keeps
// the others.
func TestOneStalls(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		const stall = 20 * time.Second
		var mutex sync.Mutex
		calls := map[int][]elector.Token{}
		free := make(chan struct{})
		p := &process{done: make(chan error, 1), link: &link{Backend: f.store.Handle()}}
		var err error
		p.Group, err = New(p.link, "orders", &Options{Partitions: 4, Elector: elector.Options{ID: "a", TTL: f.ttl, StallTimeout: stall, Logger: slog.New(slog.NewTextHandler(f.output(), nil))}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		go func() {
			p.done <- p.Run(ctx, func(ctx context.Context, l *Lease) error {
				mutex.Lock()
				calls[l.Partition()] = append(calls[l.Partition()], l.Token())
				hangs := l.Partition() == 1 && len(calls[1]) == 1
				mutex.Unlock()
				if hangs {
					<-free
					if err := l.Check(); !errors.Is(err, elector.ErrLost) {
						t.Errorf("Check of the worker that hung: %v", err)
					}
					return nil
				}
				for ; ctx.Err() == nil; time.Sleep(time.Second) {
					l.Check()
				}
				return nil
			})
		}()
		time.Sleep(10*time.Second + stall + p.challenge() + 10*time.Second)
		mutex.Lock()
		if len(calls[1]) != 2 || len(calls[0]) != 1 || len(calls[2]) != 1 || len(calls[3]) != 1 {
			t.Errorf("the workers were called with %v", calls)
		}
		mutex.Unlock()
		close(free)
		f.ends(p)
	})
}

// A deaf handle has a Watch that goes on after its context has ended.
type deaf struct {
	*memory.Backend
	free chan struct{}
}

func (d deaf) Watch(context.Context, string, func(backends.Record)) error {
	<-d.free
	return errors.New("the watch has ended")
}

// Run does not wait for a Watch that ignores its context.
func TestDeafWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		d := deaf{store.Handle(), make(chan struct{})}
		g, err := New(d, "orders", &Options{Partitions: 2, Elector: elector.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, _ *Lease) error { <-ctx.Done(); return nil })
		}()
		time.Sleep(time.Minute)
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Error("Run goes on an hour after the end of its context; the seat is " + fmt.Sprint(store.Get("orders.seat.0")))
		}
		close(d.free)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}
