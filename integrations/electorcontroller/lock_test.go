package electorcontroller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/integrations/electorcontroller"
)

// A manager is what controller-runtime's has of an election: a LeaderElector that
// starts the work, and a Start that returns when the work has ended.
type manager struct {
	*leaderelection.LeaderElector
	work func(context.Context)
	won  chan struct{}
}

func newManager(t *testing.T, lock resourcelock.Interface, work func(context.Context)) *manager {
	t.Helper()
	m := &manager{work: work, won: make(chan struct{})}
	var err error
	m.LeaderElector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(m.won) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Start elects for longer than the work lasts, as controller-runtime's Start does.
func (m *manager) Start(ctx context.Context) error {
	election, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), klog.Logger{}))
	elected := make(chan struct{})
	go func() { defer close(elected); m.Run(election) }()
	select {
	case <-m.won:
		m.work(ctx)
	case <-ctx.Done():
	}
	end()
	<-elected
	return nil
}

func record(id string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: id, LeaseDurationSeconds: 15}
}

// holder returns whom the lock shows.
func holder(t *testing.T, l *electorcontroller.Lock) string {
	t.Helper()
	r, _, err := l.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.HolderIdentity
}

func TestLock(t *testing.T) {
	start := func(s *electortest.Script, l *electorcontroller.Lock, f func(context.Context) error) (stop func() error) {
		return s.Start(func(ctx context.Context) error { return l.Start(ctx, f) })
	}
	cases := map[string]func(t *testing.T, s *electortest.Script){
		"a manager for a term": func(t *testing.T, s *electortest.Script) {
			other := s.AnotherLeads("other", "")
			s.Restore()
			l := electorcontroller.NewLock(s.Elector)
			worked := make(chan time.Time, 1)
			m := newManager(t, l, func(ctx context.Context) { worked <- time.Now(); <-ctx.Done() })
			stop := start(s, l, m.Start)
			time.Sleep(time.Minute)
			if m.IsLeader() || holder(t, l) != "" {
				t.Error("it leads beside another process")
			}
			resigned := time.Now()
			if err := other.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Win()
			if took := (<-worked).Sub(resigned); took > time.Second {
				t.Errorf("the work began %v after the election was free", took)
			}
			time.Sleep(time.Hour)
			if lease, err := l.Lease(); err != nil || !m.IsLeader() || holder(t, l) != s.Elector.ID() {
				t.Errorf("after an hour it does not lead: %v, %v", lease, err)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if leader, err := s.Elector.Leader(t.Context()); err != nil || !leader.Vacant() {
				t.Errorf("the store was not told: %+v, %v", leader, err)
			}
		},
		"the context ends with the lease": func(t *testing.T, s *electortest.Script) {
			var lease *elector.Lease
			l := electorcontroller.NewLock(s.Elector)
			m := newManager(t, l, func(ctx context.Context) {
				lease, _ = l.Lease()
				<-ctx.Done()
				if err := lease.Check(); !errors.Is(err, elector.ErrLost) || !errors.Is(context.Cause(ctx), elector.ErrLost) {
					t.Errorf("the context ends because of %v, and the lease: %v", context.Cause(ctx), err)
				}
			})
			returned := make(chan time.Time, 1)
			stop := s.Start(func(ctx context.Context) error {
				defer func() { returned <- time.Now() }()
				return l.Start(ctx, m.Start)
			})
			s.Win()
			s.Outage()
			s.Loss()
			lost := time.Now()
			// Before client-go notices: it asks every two seconds.
			select {
			case at := <-returned:
				if late := at.Sub(lost); late > 0 {
					t.Errorf("the manager ran for %v after the lease", late)
				}
			case <-time.After(time.Hour):
				t.Fatal("the manager runs an hour after the lease")
			}
			if err := stop(); !errors.Is(err, elector.ErrLost) {
				t.Errorf("Start returns %v", err)
			}
		},
		"one term": func(t *testing.T, s *electortest.Script) {
			l := electorcontroller.NewLock(s.Elector)
			returns := make(chan struct{})
			defer close(returns)
			m := newManager(t, l, func(context.Context) { <-returns })
			start(s, l, m.Start)
			s.Win()
			s.Outage()
			s.Loss()
			time.Sleep(3 * time.Second)
			if m.IsLeader() || holder(t, l) != "" {
				t.Error("client-go believes that it leads after the lease is over")
			}
			s.Restore()
			for range 100 {
				time.Sleep(30 * time.Second)
				if err := l.Update(t.Context(), record(l.Identity())); !errors.Is(err, elector.ErrLost) {
					t.Fatalf("a second term: %v", err)
				}
				if _, err := s.Elector.Token(); err == nil {
					t.Fatal("it leads again")
				}
			}
		},
		"told when the manager has stopped": func(t *testing.T, s *electortest.Script) {
			released, returns := make(chan struct{}), make(chan struct{})
			l := electorcontroller.NewLock(s.Elector)
			stop := start(s, l, func(ctx context.Context) error {
				if err := l.Update(ctx, record(l.Identity())); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				if err := l.Update(context.Background(), record("")); err != nil { // as ReleaseOnCancel does
					t.Error(err)
				}
				close(released)
				<-returns
				return nil
			})
			s.Win()
			go func() {
				<-released
				time.Sleep(5 * time.Second)
				if leader, err := s.Elector.Leader(context.Background()); err != nil || leader.Vacant() {
					t.Errorf("the store was told while the manager stops: %+v, %v", leader, err)
				}
				if err := l.Update(context.Background(), record(l.Identity())); !errors.Is(err, elector.ErrNotLeader) {
					t.Errorf("a second term: %v", err)
				}
				if holder(t, l) != "" {
					t.Error("the lock shows a holder after its release")
				}
				close(returns)
			}()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if leader, err := s.Elector.Leader(t.Context()); err != nil || !leader.Vacant() {
				t.Errorf("the store was not told: %+v, %v", leader, err)
			}
		},
		"not told after an error": func(t *testing.T, s *electortest.Script) {
			broken := errors.New("a reconciler does not stop")
			l := electorcontroller.NewLock(s.Elector)
			stop := start(s, l, func(ctx context.Context) error {
				if err := l.Update(ctx, record(l.Identity())); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return broken
			})
			s.Win()
			if err := stop(); !errors.Is(err, broken) {
				t.Errorf("Start returns %v", err)
			}
			if leader, err := s.Elector.Leader(t.Context()); err != nil || leader.Vacant() {
				t.Errorf("the store was told: %+v, %v", leader, err)
			}
			if _, err := l.Lease(); !errors.Is(err, elector.ErrLost) {
				t.Errorf("the lease: %v", err)
			}
		},
		"refused outside of Start": func(t *testing.T, s *electortest.Script) {
			l := electorcontroller.NewLock(s.Elector)
			if err := l.Create(t.Context(), record(l.Identity())); !errors.Is(err, elector.ErrInvalid) {
				t.Errorf("Create returns %v", err)
			}
			if _, err := l.Lease(); !errors.Is(err, elector.ErrNotLeader) {
				t.Errorf("Lease returns %v", err)
			}
			if err := l.Start(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Errorf("a manager that never asked to lead: %v", err)
			}
			if err := l.Start(t.Context(), func(context.Context) error { return nil }); !errors.Is(err, elector.ErrInvalid) {
				t.Errorf("a second Start returns %v", err)
			}
		},
		"another process with the same ID": func(t *testing.T, s *electortest.Script) {
			s.AnotherLeads(s.Elector.ID(), "")
			s.Restore()
			l := electorcontroller.NewLock(s.Elector)
			m := newManager(t, l, func(context.Context) { t.Error("it leads beside its namesake") })
			stop := start(s, l, m.Start)
			time.Sleep(time.Hour)
			if m.IsLeader() || holder(t, l) != "" {
				t.Error("client-go takes the other process for this one")
			}
			if err := l.Update(t.Context(), record("a third")); !errors.Is(err, elector.ErrInvalid) {
				t.Errorf("for a third process Update returns %v", err)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		},
		"a campaign that cannot succeed": func(t *testing.T, s *electortest.Script) {
			if err := s.Elector.Close(); err != nil {
				t.Fatal(err)
			}
			l := electorcontroller.NewLock(s.Elector)
			m := newManager(t, l, func(context.Context) { t.Error("it leads") })
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			if err := l.Start(ctx, m.Start); !errors.Is(err, elector.ErrClosed) || time.Since(began) > time.Minute {
				t.Errorf("Start returns after %v: %v", time.Since(began), err)
			}
		},
		"client-go hangs": func(t *testing.T, s *electortest.Script) {
			l := electorcontroller.NewLock(s.Elector)
			ctx, stop := context.WithCancel(t.Context())
			var asked atomic.Bool
			s.Start(func(context.Context) error {
				return l.Start(ctx, func(ctx context.Context) error {
					defer asked.Store(true)
					for range 20 {
						if err := l.Update(ctx, record(l.Identity())); err != nil {
							t.Errorf("while client-go asks: %v", err)
						}
						time.Sleep(2 * time.Second)
					}
					asked.Store(true)
					<-ctx.Done()
					return nil
				})
			})
			s.Win()
			s.Loss()
			if !asked.Load() {
				t.Error("lost while client-go asks")
			}
			stop()
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &elector.Options{}
				if name == "client-go hangs" {
					o.StallTimeout = 10 * time.Second
				}
				run(t, electortest.New(t, "controllers", o))
			})
		})
	}
}
