package electorgocron_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorgocron"
	"github.com/elector-go/elector/internal/fault"
)

// newLocker makes a process's Locker, with a minimum hold of 3 s.
func newLocker(t *testing.T, b backends.Backend) *electorgocron.Locker {
	t.Helper()
	l, err := electorgocron.NewLocker(b, &elector.Options{Logger: slog.New(slog.DiscardHandler)}, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func lock(t *testing.T, l *electorgocron.Locker) gocron.Lock {
	t.Helper()
	held, err := l.Lock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func unlock(t *testing.T, held gocron.Lock) {
	t.Helper()
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

func refused(t *testing.T, l *electorgocron.Locker, want error) {
	t.Helper()
	if _, err := l.Lock(t.Context(), "job"); !errors.Is(err, want) {
		t.Errorf("Lock returns %v, not %v", err, want)
	}
}

// after runs what follows a time after the last call.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLocker(t *testing.T) {
	cases := map[string]func(t *testing.T, s *memory.Store){
		"kept for the minimum hold": func(t *testing.T, s *memory.Store) {
			a, b := newLocker(t, s.Handle()), newLocker(t, s.Handle())
			unlock(t, lock(t, a))
			after(3*time.Second - 1)
			refused(t, b, elector.ErrHeld)
			after(1)
			unlock(t, lock(t, b))
		},
		"kept while the job runs": func(t *testing.T, s *memory.Store) {
			a, b := newLocker(t, s.Handle()), newLocker(t, s.Handle())
			held := lock(t, a)
			after(time.Hour)
			refused(t, b, elector.ErrHeld)
			refused(t, a, elector.ErrBusy)
			unlock(t, held)
			unlock(t, lock(t, b))
		},
		"no hindrance to the own next tick": func(t *testing.T, s *memory.Store) {
			a, b := newLocker(t, s.Handle()), newLocker(t, s.Handle())
			var token elector.Token
			for range 10 {
				held := lock(t, a)
				lease, err := a.Lease("job")
				if err != nil || lease.Check() != nil || token != 0 && lease.Token() != token {
					t.Errorf("the job has the lease %v, %v", lease, err)
				}
				token = lease.Token()
				after(10 * time.Millisecond)
				unlock(t, held)
				after(time.Second)
				refused(t, b, elector.ErrHeld)
			}
			after(2 * time.Second)
			lock(t, b)
			if _, err := a.Lease("job"); !errors.Is(err, elector.ErrNotLeader) {
				t.Errorf("a has a lease: %v", err)
			}
		},
		"taken over at the next tick after a crash": func(t *testing.T, s *memory.Store) {
			f, cut := fault.Wrap(s.Handle())
			a, b := newLocker(t, cut), newLocker(t, s.Handle())
			lock(t, a)
			lease, err := a.Lease("job")
			if err != nil {
				t.Fatal(err)
			}
			refused(t, b, elector.ErrHeld)
			after(20 * time.Second)
			f.Always(fault.Hang) // a renews no more
			f.CutWatches(elector.ErrUnavailable)
			after(time.Minute)
			if lease.Check() == nil {
				t.Error("a has not lost its lease")
			}
			lock(t, b) // its first call since
			f.Always(nil)
			f.CutWatches(nil)
		},
		"refused with a short lease": func(t *testing.T, s *memory.Store) {
			f, cut := fault.Wrap(s.Handle())
			a := newLocker(t, cut)
			unlock(t, lock(t, a))
			f.Always(fault.Hang)
			held, err := a.Lock(t.Context(), "job")
			lease, _ := a.Lease("job")
			var last time.Time
			for ; err == nil; held, err = a.Lock(t.Context(), "job") {
				last = time.Now()
				unlock(t, held)
				after(100 * time.Millisecond)
			}
			if !errors.Is(err, elector.ErrUnavailable) || lease.Check() != nil {
				t.Errorf("Lock returns %v, while the lease is %v", err, lease.Check())
			}
			<-lease.Context().Done()
			if left := time.Since(last); left < 3*time.Second {
				t.Errorf("a tick ran %v before the end of the lease", left)
			}
			f.Always(nil)
		},
		"closed when the minimum hold is over": func(t *testing.T, s *memory.Store) {
			a, b := newLocker(t, s.Handle()), newLocker(t, s.Handle())
			unlock(t, lock(t, a))
			closed := time.Now()
			if err := errors.Join(a.Close(), a.Close()); err != nil {
				t.Error(err)
			}
			if took := time.Since(closed); took != 3*time.Second {
				t.Errorf("Close took %v", took)
			}
			refused(t, a, elector.ErrClosed)
			lock(t, b)
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, memory.NewStore()) })
		})
	}
}

func TestNewLocker(t *testing.T) {
	b := memory.NewStore().Handle()
	for hold, ok := range map[time.Duration]bool{-1: false, 0: true, 5400 * time.Millisecond: true, 5401 * time.Millisecond: false} {
		if _, err := electorgocron.NewLocker(b, nil, hold); errors.Is(err, elector.ErrInvalid) == ok {
			t.Errorf("%v: %v", hold, err)
		}
	}
	for _, o := range []*elector.Options{{TTL: 4 * time.Second}, {ClockDrift: 0.4, TTL: 8 * time.Second}, {TTL: -1}} {
		if _, err := electorgocron.NewLocker(b, o, 2*time.Second); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := electorgocron.NewLocker(nil, nil, 0); !errors.Is(err, elector.ErrInvalid) {
		t.Errorf("without a backend: %v", err)
	}
}

// A skewed clock is ahead of the others, or behind.
type skewed struct {
	clockwork.Clock
	ahead time.Duration
}

func (c skewed) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

// Three schedulers, whose clocks differ by less than the minimum hold, run a short job
// once at each of 100 ticks.
func TestLockedTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		var mutex sync.Mutex
		runs := map[time.Time]int{}
		begun := time.Now()
		for i, ahead := range []time.Duration{0, time.Second, -1900 * time.Millisecond} {
			l := newLocker(t, store.Handle())
			defer start(t, func() {
				mutex.Lock()
				defer mutex.Unlock()
				runs[time.Now().Round(time.Minute)]++
				if _, err := l.Lease("nightly report"); err != nil {
					t.Errorf("scheduler %d: %v", i, err)
				}
			}, gocron.WithDistributedLocker(l), gocron.WithClock(skewed{clockwork.NewRealClock(), ahead}))()
		}
		time.Sleep(100*time.Minute + 30*time.Second)
		mutex.Lock()
		defer mutex.Unlock()
		for tick := range 100 {
			if at := begun.Truncate(time.Minute).Add(time.Duration(tick+1) * time.Minute); runs[at] != 1 {
				t.Errorf("tick %d ran %d times", tick+1, runs[at])
			}
		}
	})
}
