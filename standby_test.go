package elector_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

// Standby runs while this candidate campaigns, and never beside the worker.
func TestStandby(t *testing.T) {
	var warm, working atomic.Int32
	var linger atomic.Int64 // how long Standby takes to return
	o := elector.Options{TTL: time.Minute, ReleaseTimeout: time.Minute, Standby: func(ctx context.Context) {
		if warm.Add(1) != 1 || working.Load() != 0 {
			t.Error("Standby runs twice, or beside the worker")
		}
		defer warm.Add(-1)
		<-ctx.Done()
		time.Sleep(time.Duration(linger.Load()))
	}}
	onStage(t, o, func(t *testing.T, s *stage) {
		first := win(t, s.candidate(elector.Options{}))
		ctx, stop := context.WithCancel(t.Context())
		leads := make(chan *elector.Lease, 9)
		ran := begin(func() error {
			return s.e.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
				if working.Add(1) != 1 || warm.Load() != 0 {
					t.Error("the worker runs beside Standby")
				}
				defer working.Add(-1)
				leads <- l
				<-ctx.Done()
				return nil
			})
		})
		pass(time.Hour)
		if warm.Load() != 1 {
			t.Error("Standby does not run while another candidate leads")
		}
		linger.Store(int64(30 * time.Second))
		first.Release(t.Context())
		pass(20 * time.Second)
		isNot(t, leads, "the worker is called before Standby has returned")
		if _, err := s.e.Token(); err != nil || s.e.State() != elector.Leading {
			t.Errorf("meanwhile the candidate does not lead: %v", err)
		}
		l := wait(t, leads, "the worker is called")

		linger.Store(int64(10 * time.Minute))
		asked := s.asks(t.Context(), l.Token(), "")
		if err := wait(t, asked, "the leader resigns upon a request"); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute) // it stands back, leads again, and waits for Standby
		isNot(t, leads, "the worker is called before Standby has returned")
		if !s.vacant() {
			t.Error("a candidate whose Standby does not return has not resigned")
		}
		linger.Store(0)
		wait(t, leads, "the worker is called once Standby has returned")
		linger.Store(int64(time.Second))
		stop()
		if err := wait(t, ran, "Run returns"); err != nil {
			t.Error(err)
		}
		if warm.Load() != 0 {
			t.Error("Run returns before Standby")
		}
	})
}

// StallTimeout does not count while the worker waits for Standby to return.
func TestStandbyStalls(t *testing.T) {
	o := elector.Options{TTL: 15 * time.Second, ReleaseTimeout: time.Minute, StallTimeout: 5 * time.Second, Standby: func(ctx context.Context) {
		<-ctx.Done()
		time.Sleep(50 * time.Second)
	}}
	onStage(t, o, func(t *testing.T, s *stage) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		leads, ended := make(chan error, 9), make(chan error, 9)
		ran := begin(func() error {
			return s.e.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
				leads <- l.Check()
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil
			})
		})
		pass(51 * time.Second)
		if err := wait(t, leads, "the worker is called"); err != nil {
			t.Error(err)
		}
		pass(20 * time.Second)
		wait(t, ended, "the lease of a worker that calls Check no more ends")
		stop()
		wait(t, ran, "Run returns")
	})
}
