package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/inject"
)

// A recorder keeps what a Trace was called with.
type recorder struct {
	mutex    sync.Mutex
	plans    []PlanInfo
	acquired []LeaseInfo
	ended    []LeaseInfo
	failed   []LeaseInfo
}

func (r *recorder) trace() *Trace {
	keep := func(to *[]LeaseInfo) func(context.Context, LeaseInfo) {
		return func(_ context.Context, i LeaseInfo) { r.mutex.Lock(); defer r.mutex.Unlock(); *to = append(*to, i) }
	}
	return &Trace{
		Planned: func(_ context.Context, i PlanInfo) {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.plans = append(r.plans, i)
		},
		Acquired: keep(&r.acquired), Ended: keep(&r.ended), Failed: keep(&r.failed),
	}
}

// take returns what was kept since the last call.
func (r *recorder) take() (plans []int, acquired, ended, failed []LeaseInfo) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, p := range r.plans {
		plans = append(plans, p.Planned)
	}
	acquired, ended, failed = r.acquired, r.ended, r.failed
	r.plans, r.acquired, r.ended, r.failed = nil, nil, nil, nil
	return plans, acquired, ended, failed
}

// last returns the last share, -1 if there is none.
func last(plans []int) int {
	if len(plans) == 0 {
		return -1
	}
	return plans[len(plans)-1]
}

// causes counts leases by their causes, and checks that each is the end of one.
func causes(t *testing.T, ended []LeaseInfo) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, i := range ended {
		all[i.Cause]++
		if i.Lease.Check() == nil || !errors.Is(i.Lease.Check(), elector.ErrLost) && !errors.Is(i.Lease.Check(), elector.ErrResigned) || i.Err == nil {
			t.Errorf("%+v has ended, and Check returns %v", i, i.Lease.Check())
		}
	}
	return all
}

// What metrics need to know of a member: it starts, hands over, takes over, is cut off and
// leaves.
func TestTrace(t *testing.T) {
	withFleet(t, 6, func(f *fleet) {
		var r, other recorder
		traced := func(r *recorder) func(o *Options) { return func(o *Options) { o.Trace = r.trace() } }
		a := f.join("a", traced(&r))
		f.settles(time.Minute, "a")
		plans, acquired, ended, failed := r.take()
		if len(plans) < 2 || plans[0] != 0 || last(plans) != 6 || len(acquired) != 6 || len(ended)+len(failed) > 0 {
			t.Errorf("at its start: %v, %v, %v, %v", plans, acquired, ended, failed)
		}
		for _, i := range acquired {
			want := LeaseInfo{Group: "orders", Store: "memory://", ID: "a", Partition: i.Lease.Partition(), Token: i.Lease.Token(), Lease: i.Lease, Unowned: i.Unowned}
			if i != want || i.Unowned < 0 || i.Unowned > time.Second {
				t.Errorf("acquired: %+v, want %+v", i, want)
			}
		}

		b := f.join("b", traced(&other))
		f.settles(time.Minute, "a", "b")
		plans, acquired, ended, _ = r.take()
		if last(plans) != 3 || len(acquired) > 0 || !maps.Equal(causes(t, ended), map[string]int{"returned": 3}) {
			t.Errorf("after it has handed over: %v, %v, %v", plans, acquired, ended)
		}
		_, acquired, _, _ = other.take()
		for _, i := range acquired {
			if every := b.options.RenewEvery; len(acquired) != 3 || i.Unowned < 0 || i.Unowned > every/4 {
				t.Errorf("%d moved, and %+v was unowned", len(acquired), i)
			}
		}

		b.link.set(true)
		f.settles(time.Minute, "a")
		plans, _, ended, _ = other.take()
		if last(plans) != 0 || !maps.Equal(causes(t, ended), map[string]int{"lost": 3}) || len(ended) > 0 && !errors.Is(ended[0].Err, elector.ErrLost) {
			t.Errorf("after it was cut off: %v, %v", plans, ended)
		}
		b.link.set(false)
		f.settles(time.Minute, "a", "b")
		r.take()
		f.ends(a, b)
		plans, _, ended, _ = r.take()
		if last(plans) != 0 || !maps.Equal(causes(t, ended), map[string]int{"returned": 3}) {
			t.Errorf("after it has left: %v, %v", plans, ended)
		}
	})
}

// A worker that fails, one that drains slowly and one that does not return.
func TestTraceOfWorkers(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		var r recorder
		o := Options{Partitions: 2, Trace: r.trace(), Elector: elector.Options{ID: "a", TTL: f.ttl, ReleaseTimeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)}}
		g, err := New(f.store.Handle(), "orders", &o)
		if err != nil {
			t.Fatal(err)
		}
		failure, stay, done := errors.New("no ledger"), make(chan struct{}), make(chan error)
		var once sync.Once
		ctx, cancel := context.WithCancel(f.Context())
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) (err error) {
				if l.Partition() == 0 {
					once.Do(func() { err = failure })
					if err != nil {
						return err
					}
					<-ctx.Done()
					time.Sleep(7 * time.Second)
					return nil
				}
				<-stay
				return nil
			})
		}()
		time.Sleep(10 * time.Second)
		if _, _, _, failed := r.take(); len(failed) != 1 || failed[0].Err != failure || failed[0].Partition != 0 || failed[0].Lease.Check() != nil {
			t.Errorf("failed: %+v", failed)
		}
		cancel()
		time.Sleep(time.Minute)
		_, _, ended, _ := r.take()
		slices.SortFunc(ended, func(a, b LeaseInfo) int { return a.Partition - b.Partition })
		if len(ended) != 2 || ended[0].Cause != "returned" || ended[0].Drain != 7*time.Second || ended[1].Cause != "timeout" || ended[1].Drain != 20*time.Second || !errors.Is(ended[1].Err, elector.ErrLost) {
			t.Errorf("ended: %+v", ended)
		}
		close(stay)
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.Close()
	})
}

// A wakeful clock is one whose machine was suspended meanwhile.
type wakeful struct {
	clock.System
	suspended *atomic.Int64
}

func (w wakeful) Now() clock.Reading {
	r := w.System.Now()
	r.Wall += time.Duration(w.suspended.Load())
	return r
}

// A worker that returns what Check returns has not failed, although its context ends a
// moment later than Check.
func TestTraceOfLoss(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		var r recorder
		var suspended atomic.Int64
		o := Options{Partitions: 1, Trace: r.trace(), Elector: elector.Options{ID: "a", TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)}}
		g, err := New(inject.Backend{Backend: f.store.Handle(), Clock: wakeful{suspended: &suspended}}, "orders", &o)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		ctx, cancel := context.WithCancel(f.Context())
		var once sync.Once
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *Lease) (err error) {
				once.Do(func() {
					time.Sleep(1234567 * time.Microsecond) // an instant at which nothing else happens
					suspended.Store(int64(time.Hour))
					if err = l.Check(); err == nil {
						t.Error("after an hour Check returns no error")
					}
				})
				if err == nil {
					<-ctx.Done()
				}
				return err
			})
		}()
		time.Sleep(2 * time.Minute)
		if _, acquired, ended, failed := r.take(); len(acquired) != 2 || len(ended) != 1 || ended[0].Cause != "lost" || len(failed) > 0 {
			t.Errorf("acquired %v, ended %v, failed %v", acquired, ended, failed)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.Close()
	})
}

// A callback that blocks makes no second owner, and the group goes on when it returns. One
// that panics changes nothing.
func TestBadCallbacks(t *testing.T) {
	for name, bad := range map[string]func(release chan struct{}){
		"blocks": func(release chan struct{}) { <-release },
		"panics": func(chan struct{}) { panic("a bug") },
	} {
		for callback := range reflect.TypeFor[Trace]().NumField() - 1 { // Failed is as the worker that calls it
			t.Run(fmt.Sprintf("%s %s", reflect.TypeFor[Trace]().Field(callback).Name, name), func(t *testing.T) {
				withFleet(t, 6, func(f *fleet) {
					release := make(chan struct{})
					trace := &Trace{}
					field := reflect.ValueOf(trace).Elem().Field(callback)
					field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { bad(release); return nil }))
					a := f.join("a", func(o *Options) { o.Trace = trace })
					time.Sleep(30 * time.Second)
					b := f.join("b", nil)
					for range 1000 { // each of which checks that no partition has two owners
						f.owners()
						time.Sleep(100 * time.Millisecond)
					}
					close(release)
					f.settles(2*time.Minute, "a", "b")
					f.ends(a, b)
				})
			})
		}
	}
}

// MultiTrace calls each callback of each Trace.
func TestMultiTrace(t *testing.T) {
	called := 0
	full := new(Trace)
	for i := range reflect.TypeFor[Trace]().NumField() {
		field := reflect.ValueOf(full).Elem().Field(i)
		field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { called++; return nil }))
	}
	both := reflect.ValueOf(MultiTrace(full, nil, new(Trace), full)).Elem()
	for i := range both.NumField() {
		called = 0
		field := both.Field(i)
		if field.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.Zero(field.Type().In(1))}); called != 2 {
			t.Errorf("%s calls %d", both.Type().Field(i).Name, called)
		}
	}
}
