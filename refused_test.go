package elector_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// A levels counts what is logged of refusals, by level, and their ends.
type levels struct {
	slog.Handler
	refused, mild, over *atomic.Int64
}

func (l levels) Handle(_ context.Context, r slog.Record) error {
	switch {
	case strings.Contains(r.Message, "fails and is tried again") && r.Level == slog.LevelError:
		l.refused.Add(1)
	case strings.Contains(r.Message, "fails and is tried again"):
		l.mild.Add(1)
	case strings.Contains(r.Message, "works again"):
		l.over.Add(1)
	}
	return nil
}

func (l levels) Enabled(context.Context, slog.Level) bool { return true }
func (l levels) WithAttrs([]slog.Attr) slog.Handler       { return l }

// A store that refuses for a while ends no campaign of an Elector that has led, or has seen
// another one lead. All of them come back by themselves, and say so once.
func TestRefusedForAWhile(t *testing.T) {
	for name, refusal := range map[string]error{"denied": backends.ErrDenied, "misconfigured": backends.ErrMisconfigured, "foreign": backends.ErrForeignRecord} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := levels{slog.DiscardHandler, new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)}
				var waits atomic.Int64
				o := elector.Options{TTL: 15 * time.Second, Logger: slog.New(log), Trace: &elector.Trace{Waiting: func(_ context.Context, i elector.CampaignInfo) {
					if errors.Is(i.Err, refusal) {
						waits.Add(1)
					}
				}}}
				faults, b := fault.Wrap(memory.NewStore().Handle())
				leads := make(chan string, 9)
				electors := map[string]*elector.Elector{}
				seen := make(chan elector.Leader, 99)
				for _, id := range []string{"first", "second"} {
					o.ID = id
					e := join(t, b, o)
					electors[id] = e
					go e.Run(t.Context(), func(ctx context.Context, _ *elector.Lease) error {
						leads <- id
						<-ctx.Done()
						return nil
					})
					pass(time.Second)
				}
				wait(t, leads, "one leads")
				go func() {
					for l, err := range electors["second"].Observe(t.Context()) {
						if err == nil {
							seen <- l
						} else if t.Context().Err() == nil {
							t.Errorf("Observe ends: %v", err)
						}
					}
				}()
				pass(time.Second)
				wait(t, seen, "a first pair")

				faults.Always(fault.Fails(refusal))
				faults.CutWatches(refusal)
				pass(time.Minute)
				for id, e := range electors {
					if got := e.State(); got != elector.Refused {
						t.Errorf("%s is %q, not %q", id, got, elector.Refused)
					}
				}
				asked := faults.Count("load") + faults.Count("swap")
				pass(10 * time.Minute)
				if n := faults.Count("load") + faults.Count("swap") - asked; n > 10*60 {
					t.Errorf("%d requests in ten minutes in which the store refuses", n)
				}
				// Renewals, campaigns, reads and watches of two, each once, and once for both.
				if n := log.refused.Load(); n == 0 || n > 9 || log.mild.Load() > 0 || log.over.Load() > 0 {
					t.Errorf("%d errors and %d warnings are logged of refusals, and %d ends", n, log.mild.Load(), log.over.Load())
				}

				faults.Always(nil)
				pass(time.Minute)
				wait(t, leads, "one leads again")
				if len(seen) == 0 {
					t.Error("the observer has seen nothing of it")
				}
				if log.over.Load() == 0 || waits.Load() == 0 {
					t.Errorf("%d lines say that it is over, and Waiting was called %d times", log.over.Load(), waits.Load())
				}
			})
		})
	}
}

// What a store refuses from the beginning, and what cannot help, ends a campaign at once.
func TestRefusedAtOnce(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		s.fault.Always(fault.Fails(backends.ErrDenied))
		brief, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		if _, err := s.e.Campaign(brief); !errors.Is(err, elector.ErrDenied) || brief.Err() != nil {
			t.Errorf("Campaign that was never answered: %v", err)
		}
		s.plain()
		if err := win(t, s.e).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.fault.Always(fault.Fails(backends.ErrDenied))
		if _, err := s.e.TryCampaign(t.Context()); !errors.Is(err, elector.ErrDenied) {
			t.Errorf("TryCampaign: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.e.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, elector.ErrDenied) || errors.Is(err, elector.ErrHeld) {
			t.Errorf("Campaign at its deadline: %v", err)
		}
		s.fault.Always(fault.Fails(backends.ErrName))
		if _, err := s.e.Campaign(t.Context()); !errors.Is(err, elector.ErrName) {
			t.Errorf("Campaign under a wrong name: %v", err)
		}
	})
}

// Where leases are long, what the store refuses is tried again every 15 to 30 s.
func TestRefusedPauses(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Hour}, func(t *testing.T, s *stage) {
		if err := win(t, s.e).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.fault.Always(fault.Fails(backends.ErrDenied))
		go s.e.Campaign(t.Context())
		pass(10 * time.Minute)
		before := s.fault.Count("load")
		pass(time.Hour)
		if n := s.fault.Count("load") - before; n < 110 || n > 250 {
			t.Errorf("%d tries in an hour", n)
		}
	})
}

// A deadline of a waiter that is refused shows the refusal, and not the leader of before.
func TestRefusedWaiter(t *testing.T) {
	for _, ttl := range []time.Duration{15 * time.Second, 10 * time.Hour} {
		onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
			win(t, join(t, s.store.Handle(), elector.Options{TTL: ttl}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			ended := begin(func() error { _, err := s.e.Campaign(ctx); return err })
			pass(time.Minute)
			s.fault.Always(fault.Fails(backends.ErrDenied))
			s.fault.CutWatches(backends.ErrDenied)
			pass(time.Minute)
			if got := s.e.State(); got != elector.Refused {
				t.Errorf("with a TTL of %v it is %q", ttl, got)
			}
			pass(time.Hour)
			if err := <-ended; !errors.Is(err, elector.ErrDenied) || errors.Is(err, elector.ErrHeld) {
				t.Errorf("Campaign at its deadline, with a TTL of %v: %v", ttl, err)
			}
		})
	}
}

// A release that the store refuses is tried again until ReleaseTimeout.
func TestRefusedRelease(t *testing.T) {
	for _, c := range []struct {
		refusal error
		lasts   time.Duration
		takes   time.Duration // at most; a failure if it is not longer than lasts
	}{
		{backends.ErrDenied, 5 * time.Second, 10 * time.Second},
		{backends.ErrMisconfigured, 5 * time.Second, 10 * time.Second},
		{backends.ErrDenied, time.Minute, 15 * time.Second},
		{backends.ErrForeignRecord, time.Minute, 0},
		{backends.ErrName, time.Minute, 0},
	} {
		onStage(t, elector.Options{TTL: 15 * time.Second}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			s.fault.Always(fault.Fails(c.refusal))
			time.AfterFunc(c.lasts, s.plain)
			start := time.Now()
			err := l.Release(t.Context())
			if (err == nil) != (c.takes > c.lasts) || err != nil && !errors.Is(err, c.refusal) || time.Since(start) > c.takes {
				t.Errorf("%v for %v: Release returns after %v: %v", c.refusal, c.lasts, time.Since(start), err)
			}
			pass(2 * time.Minute)
		})
	}
}
