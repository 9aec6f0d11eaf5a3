package electorcontroller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/integrations/electorcontroller"
)

func TestRun(t *testing.T) {
	broken := errors.New("a reconciler does not stop")
	cases := map[string]func(t *testing.T, s *electortest.Script){
		"a manager for each term": func(t *testing.T, s *electortest.Script) {
			starts := 0
			stop := s.Start(func(ctx context.Context) error {
				return electorcontroller.Run(ctx, s.Elector, func(ctx context.Context, lease *elector.Lease) error {
					starts++
					<-ctx.Done()
					return nil
				})
			})
			s.Win()
			s.Outage()
			s.Loss()
			s.Restore()
			s.Win()
			if starts != 2 {
				t.Errorf("%d managers in two terms", starts)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if leader, err := s.Elector.Leader(t.Context()); err != nil || !leader.Vacant() {
				t.Errorf("the store was not told: %+v, %v", leader, err)
			}
		},
		"not told after an error": func(t *testing.T, s *electortest.Script) {
			stop := s.Start(func(ctx context.Context) error {
				return electorcontroller.Run(ctx, s.Elector, func(ctx context.Context, lease *elector.Lease) error {
					<-ctx.Done()
					if err := lease.Check(); err != nil {
						t.Errorf("the lease is over before the manager has stopped: %v", err)
					}
					return broken
				})
			})
			s.Win()
			if err := stop(); !errors.Is(err, broken) {
				t.Errorf("Run returns %v", err)
			}
			if leader, err := s.Elector.Leader(t.Context()); err != nil || leader.Vacant() {
				t.Errorf("the store was told: %+v, %v", leader, err)
			}
			if _, err := s.Elector.Token(); !errors.Is(err, elector.ErrLost) {
				t.Errorf("the lease: %v", err)
			}
		},
		"no further term after an error": func(t *testing.T, s *electortest.Script) {
			ran := make(chan error, 1)
			s.Start(func(ctx context.Context) error {
				err := electorcontroller.Run(ctx, s.Elector, func(ctx context.Context, lease *elector.Lease) error {
					<-ctx.Done()
					return broken
				})
				ran <- err
				return err
			})
			s.Win()
			s.Outage()
			s.Loss()
			s.Restore()
			select {
			case err := <-ran:
				if !errors.Is(err, broken) {
					t.Errorf("Run returns %v", err)
				}
			case <-time.After(time.Hour):
				t.Error("Run campaigns although reconcilers may still run")
			}
			if leader, err := s.Elector.Leader(t.Context()); err != nil || leader.ID == "" {
				t.Errorf("the store was told: %+v, %v", leader, err)
			}
		},
		"a panic passes": func(t *testing.T, s *electortest.Script) {
			defer func() {
				if p := recover(); p != "a bug" {
					t.Errorf("recovered %v", p)
				}
			}()
			electorcontroller.Run(t.Context(), s.Elector, func(context.Context, *elector.Lease) error { panic("a bug") })
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, electortest.New(t, "controllers", nil)) })
		})
	}
}
