package electorgocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/integrations/electorgocron"
)

// start starts a scheduler that runs the job at each full minute, and returns what
// stops it.
func start(t *testing.T, job func(), o ...gocron.SchedulerOption) (shutdown func()) {
	t.Helper()
	s, err := gocron.NewScheduler(o...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(job), gocron.WithName("nightly report")); err != nil {
		t.Fatal(err)
	}
	s.Start()
	return func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	}
}

// Each tick runs while the process leads, and none while it does not.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "scheduler", nil)
		x := electorgocron.NewElector(s.Elector, 0)
		var runs atomic.Int64
		shutdown := start(t, func() {
			if lease, err := x.Lease(); err != nil || lease.Check() != nil || lease.Token() == 0 {
				t.Errorf("the job has the lease %v, %v", lease, err)
			}
			runs.Add(1)
		}, gocron.WithDistributedElector(x))
		hour := func(when string, want int64) {
			t.Helper()
			before := runs.Load()
			time.Sleep(time.Hour)
			if got := runs.Load() - before; got != want {
				t.Errorf("%s: %d ticks ran in an hour", when, got)
			}
		}
		time.Sleep(30 * time.Second) // so that no hour ends at a tick
		hour("before it leads", 0)
		stop := s.Start(x.Run)
		s.Win()
		hour("leader", 60)
		s.Outage()
		s.Loss()
		hour("outage", 0)
		s.Restore()
		s.Win()
		hour("leader again", 60)
		shutdown()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if _, err := x.Lease(); !errors.Is(err, elector.ErrNotLeader) {
			t.Errorf("stopped: %v", err)
		}
	})
}

func TestElector(t *testing.T) {
	// A process that is told to stop right after a tick keeps the others from leading
	// for the minimum hold, and refuses further ticks.
	t.Run("planned stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := electortest.New(t, "scheduler", nil)
			x := electorgocron.NewElector(s.Elector, 3*time.Second)
			stop := s.Start(x.Run)
			s.Win()
			time.Sleep(time.Minute)
			if err := x.IsLeader(t.Context()); err != nil {
				t.Fatal(err)
			}
			tick := time.Now()
			go func() {
				time.Sleep(time.Second)
				if err := x.IsLeader(context.Background()); !errors.Is(err, elector.ErrNotLeader) {
					t.Errorf("a tick during the stop: %v", err)
				}
			}()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if held := time.Since(tick); held != 3*time.Second {
				t.Errorf("it resigned %v after a tick", held)
			}
		})
	})
	// No process may lead within the minimum hold after a tick, if this one dies then.
	t.Run("short lease", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := electortest.New(t, "scheduler", nil)
			x := electorgocron.NewElector(s.Elector, 3*time.Second)
			s.Start(x.Run)
			s.Win()
			s.Outage()
			var last time.Time
			for x.IsLeader(t.Context()) == nil {
				last = time.Now()
				time.Sleep(time.Millisecond)
			}
			if _, err := s.Elector.Token(); err != nil {
				t.Errorf("ticks are refused only now that the lease is over: %v", err)
			}
			s.Loss()
			if left := time.Since(last); left < 3*time.Second {
				t.Errorf("a tick ran %v before the end of the lease", left)
			}
		})
	})
	t.Run("minimum hold too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for hold, ok := range map[time.Duration]bool{-1: false, 1: true, 5400 * time.Millisecond: true, 5401 * time.Millisecond: false} {
				s := electortest.New(t, "scheduler", nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := electorgocron.NewElector(s.Elector, hold).Run(ctx)
				cancel()
				if errors.Is(err, elector.ErrInvalid) == ok {
					t.Errorf("%v: %v", hold, err)
				}
			}
		})
	})
}
