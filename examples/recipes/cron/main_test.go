package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestCron(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "cron", nil)
		var runs atomic.Int64
		const takes = 10 * time.Second
		stop := s.Start(func(ctx context.Context) error {
			return s.Elector.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
				return lead(ctx, lease, "* * * * *", func(l *elector.Lease) {
					if l.Check() != nil || l.Token() == 0 {
						t.Error("the job has no lease")
					}
					runs.Add(1)
					time.Sleep(takes)
				})
			})
		})
		hour := func(when string, want int64) {
			t.Helper()
			before := runs.Load()
			time.Sleep(time.Hour)
			if got := runs.Load() - before; got != want {
				t.Errorf("%s: %d ticks ran in an hour", when, got)
			}
		}
		s.Win()
		time.Sleep(30 * time.Second)
		hour("leader", 60)
		s.Outage()
		s.Loss()
		hour("outage", 0)
		s.Restore()
		s.Win()
		hour("leader again", 60)

		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
		told := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(told); took != takes-time.Second {
			t.Errorf("it resigned %v after it was told to stop, while a job had %v to run", took, takes-time.Second)
		}
	})
}

func TestBadSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "cron", nil)
		err := s.Elector.Run(t.Context(), func(ctx context.Context, lease *elector.Lease) error {
			return lead(ctx, lease, "now and then", nil)
		})
		if err == nil {
			t.Error("a bad schedule is no error")
		}
	})
}
