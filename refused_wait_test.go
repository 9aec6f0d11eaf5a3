package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/operate"
)

// deny denies everything after a time.
func (s *stage) deny(after time.Duration) {
	s.fault.Always(func(ctx context.Context, _ fault.Call, _ fault.Send) (backends.Record, error) {
		select {
		case <-time.After(after):
			return backends.Record{}, backends.ErrDenied
		case <-ctx.Done():
			return backends.Record{}, ctx.Err()
		}
	})
	s.fault.CutWatches(backends.ErrDenied)
}

func (s *stage) allow() {
	s.plain()
	s.fault.CutWatches(nil)
}

// What a deadline reports of a waiter: the refusal while there is one, wherever the deadline
// falls, and who leads once that is known again, or if the watch alone is refused.
func TestRefusedDeadlines(t *testing.T) {
	for name, c := range map[string]struct {
		during func(s *stage, i int)
		want   error
	}{
		"refused": {func(s *stage, i int) {
			s.deny(2 * time.Second)
			pass(6*time.Second + time.Duration(i)*800*time.Millisecond)
		}, elector.ErrDenied},
		"over": {func(s *stage, i int) {
			s.deny(0)
			pass(40*time.Second + time.Duration(i)*170*time.Millisecond)
			s.allow()
			pass(10 * time.Minute)
		}, elector.ErrHeld},
		"the watch alone": {func(s *stage, i int) {
			s.fault.CutWatches(backends.ErrDenied)
			pass(10*time.Minute + time.Duration(i)*730*time.Millisecond)
		}, elector.ErrHeld},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 40 {
				onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
					win(t, join(t, s.store.Handle(), elector.Options{TTL: time.Minute}))
					ctx, cancel := context.WithCancelCause(t.Context())
					ended := begin(func() error { _, err := s.e.Campaign(ctx); return err })
					pass(time.Minute)
					c.during(s, i)
					if got := s.e.State(); (got == elector.Refused) != (c.want == elector.ErrDenied) {
						t.Errorf("it is %q", got)
					}
					cancel(context.DeadlineExceeded)
					err := wait(t, ended, "Campaign returns")
					for _, other := range []error{elector.ErrDenied, elector.ErrHeld} {
						if errors.Is(err, other) != (other == c.want) {
							t.Errorf("Campaign returns %v, want %v", err, c.want)
						}
					}
				})
			}
		})
	}
}

// A candidate that waits for the end of a pause shows that it is refused, and when that is over.
func TestRefusedInPause(t *testing.T) {
	var refused, paused atomic.Int64
	o := elector.Options{Trace: &elector.Trace{Waiting: func(_ context.Context, i elector.CampaignInfo) {
		if errors.Is(i.Err, elector.ErrDenied) {
			refused.Add(1)
		} else if errors.Is(i.Err, elector.ErrPaused) {
			paused.Add(1)
		}
	}}}
	onStage(t, o, func(t *testing.T, s *stage) {
		if err := join(t, s.store.Handle(), elector.Options{ID: "op"}).Operator().Pause(t.Context(), operate.Pause{}); err != nil {
			t.Fatal(err)
		}
		go s.e.Campaign(t.Context())
		pass(time.Minute)
		before := paused.Load()
		s.deny(0)
		pass(time.Hour)
		if got := s.e.State(); got != elector.Refused || refused.Load() == 0 {
			t.Errorf("it is %q, and Waiting was told %d times", got, refused.Load())
		}
		s.allow()
		pass(time.Minute)
		if got := s.e.State(); got != elector.Paused || paused.Load() == before {
			t.Errorf("afterwards it is %q", got)
		}
	})
}

// A read that is to settle a doubt, and fails once, is made again: nothing else would end the
// wait.
func TestDoubtStays(t *testing.T) {
	for _, failure := range []error{backends.ErrDenied, backends.ErrUnavailable} {
		onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
			if err := join(t, s.store.Handle(), elector.Options{ID: "op"}).Operator().Pause(t.Context(), operate.Pause{}); err != nil {
				t.Fatal(err)
			}
			won := begin(func() error { _, err := s.e.Campaign(t.Context()); return err })
			pass(time.Minute)
			s.fault.Always(fault.Fails(failure)) // the watch goes on
			s.store.Delete("bubble")
			pass(time.Second)
			s.plain()
			if err := wait(t, won, "it leads after the record was deleted"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A counted handler counts what is logged at level Error.
type counted struct {
	slog.Handler
	errors *atomic.Int64
}

func (c counted) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError {
		c.errors.Add(1)
	}
	return nil
}

func (c counted) Enabled(context.Context, slog.Level) bool { return true }
func (c counted) WithAttrs([]slog.Attr) slog.Handler       { return c }

// A refusal that has another id for each request is logged once.
func TestRefusedWithIDs(t *testing.T) {
	n := new(atomic.Int64)
	onStage(t, elector.Options{Logger: slog.New(counted{slog.DiscardHandler, n})}, func(t *testing.T, s *stage) {
		if err := win(t, s.e).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		var id atomic.Int64
		s.fault.Always(func(context.Context, fault.Call, fault.Send) (backends.Record, error) {
			return backends.Record{}, fmt.Errorf("%w (request 0%x-a)", backends.ErrDenied, id.Add(1)*0x9E3779B97F4A7C1)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s.e.Campaign(ctx)
		pass(time.Second)
		if n.Load() != 1 {
			t.Errorf("%d lines in an hour", n.Load())
		}
	})
}
