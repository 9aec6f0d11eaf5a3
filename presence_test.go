package elector_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// blind hides that a backend can watch, so that only renewals find out.
type blind struct{ backends.Backend }

func TestPresence(t *testing.T) {
	const ttl = 10 * time.Minute
	deposed := func(t *testing.T, l *elector.Lease) {
		t.Helper()
		if err := l.Check(); !errors.Is(err, elector.ErrLost) || !errors.Is(err, elector.ErrDeposed) {
			t.Errorf("Check of a leader whose mark was removed: %v", err)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, elector.ErrDeposed) {
			t.Errorf("the cause of its context: %v", cause)
		}
	}

	t.Run("deposed at once, told later, and stands back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			// The other candidate is slow to see the vacancy, and is no successor.
			h := s.Handle()
			a, b := join(t, s.Handle(), elector.Options{TTL: ttl}), join(t, late{h, any(h).(backends.Watcher)}, elector.Options{TTL: ttl, ID: strings.Repeat("b", 257)})
			ctx, stop := context.WithCancel(t.Context())
			defer synctest.Wait() // for campaigns that are still there if this fails
			defer stop()
			campaign := func(e *elector.Elector) <-chan *elector.Lease {
				won := make(chan *elector.Lease, 1)
				go func() {
					if l, err := e.Campaign(ctx); err == nil {
						won <- l
					}
				}()
				return won
			}
			l := win(t, a)
			next := campaign(b)
			pass(time.Second)
			s.Depose("bubble")
			synctest.Wait() // no time passes
			deposed(t, l)
			pass(time.Second)
			select {
			case <-next:
				t.Fatal("a second leader while it is unknown whether the deposed leader's work has stopped")
			default:
			}
			again := campaign(a) // reports that it has
			select {
			case <-next:
			case <-again:
				t.Fatal("the leader that was deposed leads again before another candidate could")
			}
			if err := b.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			wait(t, again, "the leader that was deposed leads again once another one has led")
		})
	})

	t.Run("found by a renewal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			l := win(t, join(t, blind{s.Handle()}, elector.Options{TTL: ttl, RenewEvery: time.Minute}))
			pass(time.Second)
			s.Depose("bubble")
			pass(time.Minute)
			deposed(t, l)
		})
	})

	t.Run("told after the worker has returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			a, b := join(t, s.Handle(), elector.Options{TTL: ttl}), join(t, s.Handle(), elector.Options{TTL: ttl})
			leads, finish := make(chan *elector.Lease, 2), make(chan struct{})
			ctx, stop := context.WithCancel(t.Context())
			done := begin(func() error {
				return a.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
					leads <- l
					<-ctx.Done()
					<-finish
					return nil
				})
			})
			l := wait(t, leads, "Run calls the worker")
			next := campaign(t, b)
			pass(time.Second)
			s.Depose("bubble")
			synctest.Wait()
			deposed(t, l)
			pass(ttl / 2)
			select {
			case <-next:
				t.Error("a second leader while the deposed one's worker runs")
			default:
			}
			close(finish)
			pass(time.Second)
			select {
			case <-next:
			default:
				t.Error("no candidate has replaced the leader whose worker has returned")
			}
			stop()
			wait(t, done, "Run returns")
		})
	})

	t.Run("deposed while it resigns in Run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			a := join(t, s.Handle(), elector.Options{TTL: ttl, ReleaseTimeout: ttl})
			finish, leads := make(chan struct{}), make(chan *elector.Lease, 2)
			done := begin(func() error {
				return a.Run(t.Context(), func(_ context.Context, l *elector.Lease) error {
					leads <- l
					<-finish
					return nil
				})
			})
			wait(t, leads, "Run calls the worker")
			resigned := begin(func() error { return a.Resign(t.Context()) })
			synctest.Wait()
			s.Depose("bubble")
			if err := wait(t, resigned, "Resign returns"); !errors.Is(err, elector.ErrLost) {
				t.Errorf("Resign of a leader that was deposed before its worker returned: %v", err)
			}
			close(finish)
			if err := wait(t, done, "Run returns"); !errors.Is(err, elector.ErrLost) {
				t.Errorf("Run of a leader that was told to resign and deposed: %v", err)
			}
			if len(leads) > 0 {
				t.Error("Run leads again after Resign")
			}
		})
	})

	t.Run("replaced is not deposed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			h := s.Handle()
			e := join(t, s.Handle(), elector.Options{TTL: ttl})
			l := win(t, e)
			r, err := h.Load(t.Context(), "bubble")
			if err != nil {
				t.Fatal(err)
			}
			usurper := r
			usurper.Holder, usurper.Token, usurper.Attempt.Nonce = "usurper", r.Token+1, "usurper"
			if usurper, err = h.Swap(t.Context(), "bubble", r, usurper); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if l.Check() == nil {
				t.Error("the lease of a leader that was replaced is valid")
			}
			vacant := usurper
			vacant.Holder, vacant.Attempt.Sequence = "", 2
			if _, err := h.Swap(t.Context(), "bubble", usurper, vacant); err != nil {
				t.Fatal(err)
			}
			if _, err := e.TryCampaign(t.Context()); err != nil {
				t.Errorf("this candidate was not asked to stand back: %v", err)
			}
		})
	})
}
