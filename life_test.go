package elector_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// A stage is a store with a candidate whose requests can be made to fail, and
// what its worker in Run does.
type stage struct {
	t     *testing.T
	store *memory.Store
	fault *fault.Backend
	e     *elector.Elector

	leads    chan *elector.Lease // each lease that the worker gets
	finish   chan struct{}       // the worker returns when its context has ended and this is closed
	finished sync.Once
	result   error
	ran      <-chan error
	stop     context.CancelFunc
	released atomic.Int32 // releases that reached the store
	vacated  atomic.Int32 // those that were applied
}

// onStage runs a story in a bubble.
func onStage(t *testing.T, o elector.Options, story func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, store: memory.NewStore(), leads: make(chan *elector.Lease, 9), finish: make(chan struct{})}
		var b backends.Backend
		s.fault, b = fault.Wrap(s.store.Handle())
		s.plain()
		// The record exists already: an acquisition that creates it has rules of
		// its own, see TestLateCreation.
		first := join(t, s.store.Handle(), elector.Options{})
		if err := win(t, first).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.e = join(t, b, o)
		story(t, s)
		s.end()
		if s.stop != nil {
			s.stop()
			<-s.ran
		}
	})
}

// plain lets all requests pass, and counts the releases.
func (s *stage) plain() {
	s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		r, err := send(ctx)
		if c.Op == "swap" && c.Next.Vacant() {
			if s.released.Add(1); err == nil {
				s.vacated.Add(1)
			}
		}
		return r, err
	})
}

// run starts the worker and waits until it leads.
func (s *stage) run() *elector.Lease {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop = cancel
	s.ran = begin(func() error { return s.e.Run(ctx, s.work) })
	return wait(s.t, s.leads, "Run calls the worker")
}

func (s *stage) work(ctx context.Context, l *elector.Lease) error {
	s.leads <- l
	<-ctx.Done()
	<-s.finish
	return s.result
}

// end lets the worker return.
func (s *stage) end() { s.finished.Do(func() { close(s.finish) }) }

// rival makes another candidate campaign.
func (s *stage) rival() <-chan *elector.Lease {
	e, won := join(s.t, s.store.Handle(), elector.Options{}), make(chan *elector.Lease, 1)
	go func() {
		if l, err := e.Campaign(s.t.Context()); err == nil {
			won <- l
		}
	}()
	return won
}

// vacant reports whether the store shows no leader.
func (s *stage) vacant() bool {
	r, err := backends.Decode("bubble", s.store.Get("bubble"))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Vacant()
}

func isNot[T any](t *testing.T, c <-chan T, what string) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%s: %v", what, v)
	default:
	}
}

// err/opaque: an error of Healthy decides nothing, whatever it wraps: the lease
// of another election may be part of a service's health.
func TestOpaqueErrors(t *testing.T) {
	other := func(t *testing.T, end func(s *memory.Store, l *elector.Lease)) error {
		s := memory.NewStore()
		l := win(t, join(t, s.Handle(), elector.Options{}))
		end(s, l)
		synctest.Wait()
		return l.Check()
	}
	for name, give := range map[string]func(t *testing.T) error{
		"deposed": func(t *testing.T) error {
			return other(t, func(s *memory.Store, _ *elector.Lease) { s.Depose("bubble") })
		},
		"resigned": func(t *testing.T) error {
			return other(t, func(_ *memory.Store, l *elector.Lease) { l.Release(t.Context()) })
		},
		"held":     func(*testing.T) error { return fmt.Errorf("dependency: %w", &elector.HeldError{}) },
		"conflict": func(*testing.T) error { return fmt.Errorf("dependency: %w", backends.ErrConflict) },
		"denied":   func(*testing.T) error { return fmt.Errorf("dependency: %w", backends.ErrDenied) },
		"lost":     func(*testing.T) error { return fmt.Errorf("dependency: %w", elector.ErrLost) },
	} {
		for _, inRun := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/run %v", name, inRun), func(t *testing.T) {
				var bad error
				var asked, sick atomic.Int32
				mine := errors.New("mine")
				o := elector.Options{Healthy: func(context.Context) error {
					asked.Add(1)
					if sick.Load() == 1 {
						return errors.Join(bad, mine)
					}
					return nil
				}}
				onStage(t, o, func(t *testing.T, s *stage) {
					bad = give(t)
					var l *elector.Lease
					if inRun {
						s.end() // the worker returns at once when it is told to
						l = s.run()
					} else {
						l = win(t, s.e)
					}
					sick.Store(1)
					<-l.Context().Done()
					pass(time.Second)
					err := context.Cause(l.Context())
					var e *elector.Error
					if !errors.Is(err, elector.ErrResigned) || errors.Is(err, elector.ErrLost) || errors.Is(err, elector.ErrDeposed) || !errors.Is(err, mine) {
						t.Errorf("a lease that ends because Healthy returns %v: %v", bad, err)
					} else if !errors.As(err, &e) || e.Election != "bubble" || errors.As(err, new(*elector.HeldError)) {
						t.Errorf("the error is not this election's: %v", err)
					}
					if !s.vacant() || s.released.Load() != 1 {
						t.Errorf("%d releases were sent", s.released.Load())
					}
					if !inRun {
						again := campaign(t, s.e)
						defer wait(t, again, "the candidate leads when it is well again")
					}
					asked.Store(0)
					pass(time.Minute)
					if n := asked.Load(); n > 30 {
						t.Errorf("Healthy was asked %d times in a minute", n)
					}
					sick.Store(0)
					if inRun {
						wait(t, s.leads, "Run campaigns again when the candidate is well")
					}
				})
			})
		}
	}
}

// A release that failed is not written later, and Resign returns why each time, also after
// Run.
func TestResignAgainAfterRun(t *testing.T) {
	onStage(t, elector.Options{ReleaseTimeout: time.Second}, func(t *testing.T, s *stage) {
		s.end()
		s.run()
		s.fault.Always(fault.RequestLost)
		first := s.e.Resign(t.Context())
		wait(t, s.ran, "Run returns")
		s.stop = nil
		s.plain()
		if err := s.e.Resign(t.Context()); first == nil || err == nil || err.Error() != first.Error() || s.vacant() {
			t.Errorf("Resign returns %v, and again %v", first, err)
		}
	})
}

// Reasons to stop only grow: who resigns while the worker drains for Healthy has
// resigned, and the worker has no more time than it had.
func TestResignWhileDraining(t *testing.T) {
	var sick atomic.Bool
	o := elector.Options{TTL: time.Minute, ReleaseTimeout: 10 * time.Minute, Healthy: func(context.Context) error {
		if sick.Load() {
			return errors.New("sick")
		}
		return nil
	}}
	t.Run("resigned", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			sick.Store(false)
			l := s.run()
			sick.Store(true)
			<-l.Context().Done()
			resigned := begin(func() error { return s.e.Resign(t.Context()) })
			pass(time.Second)
			isNot(t, resigned, "Resign returns before the worker")
			s.end()
			if err := wait(t, resigned, "Resign returns"); err != nil {
				t.Error(err)
			}
			sick.Store(false)
			if err := wait(t, s.ran, "Run returns"); err != nil {
				t.Error(err)
			}
			s.stop = nil
		})
	})
	t.Run("the first patience", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			sick.Store(false)
			l := s.run()
			sick.Store(true)
			<-l.Context().Done()
			start := time.Now()
			pass(6 * time.Minute)
			resigned := begin(func() error { return s.e.Resign(t.Context()) })
			if err := wait(t, resigned, "Resign returns"); !errors.Is(err, elector.ErrLost) || time.Since(start) > 11*time.Minute {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			s.end()
			if err := wait(t, s.ran, "Run returns"); !errors.Is(err, elector.ErrLost) {
				t.Errorf("Run of a leader that was told to resign and lost: %v", err)
			}
			s.stop = nil
		})
	})
}

// A worker that calls Resign of the Elector does not wait for itself.
func TestResignByTheWorker(t *testing.T) {
	for name, derive := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"its context": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"derived": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithoutCancel(ctx), time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
				err := s.e.Run(t.Context(), func(ctx context.Context, l *elector.Lease) error {
					start := time.Now()
					ctx, cancel := derive(ctx)
					defer cancel()
					if err := s.e.Resign(ctx); err != nil || time.Since(start) > 0 {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
					if l.Context().Err() == nil || l.Check() != nil {
						t.Errorf("the worker was not told to stop, or has lost its lease: %v", l.Check())
					}
					return nil
				})
				if err != nil || !s.vacant() {
					t.Errorf("Run: %v", err)
				}
				err = s.e.Run(t.Context(), func(ctx context.Context, l *elector.Lease) error {
					ctx, cancel := derive(ctx)
					defer cancel()
					return l.Release(ctx)
				})
				if err != nil || !s.vacant() {
					t.Errorf("Release of the lease: %v", err)
				}
			})
		})
	}
}

// res/overrun: a worker that overruns ReleaseTimeout has a lost lease,
// and the store is told when it has returned; not before, not twice, and never
// after a panic.
func TestOverrun(t *testing.T) {
	o := elector.Options{TTL: 30 * time.Minute, ReleaseTimeout: time.Minute}
	t.Run("overrun", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := s.run()
			next := s.rival()
			s.stop()
			pass(2 * time.Minute)
			if err := l.Check(); !errors.Is(err, elector.ErrLost) {
				t.Errorf("after ReleaseTimeout: %v", err)
			}
			isNot(t, next, "another candidate leads while the worker runs")
			s.end()
			if err := wait(t, s.ran, "Run returns"); !errors.Is(err, elector.ErrLost) {
				t.Errorf("Run of a worker that was too slow: %v", err)
			}
			s.stop = nil
			pass(time.Second)
			wait(t, next, "the store was told once the worker had returned")
			if n := s.vacated.Load(); n != 1 {
				t.Errorf("the store was told %d times", n)
			}
		})
	})
	for name, leave := range map[string]func(){"panic": func() { panic("a bug") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				over := make(chan struct{})
				go func() {
					defer close(over)
					defer func() { recover() }()
					s.e.Run(t.Context(), func(context.Context, *elector.Lease) error { leave(); return nil })
				}()
				<-over
				pass(time.Minute)
				if s.vacated.Load() != 0 || s.vacant() {
					t.Error("the record is released after a worker has panicked")
				}
				start := time.Now()
				wait(t, s.rival(), "another candidate leads in the end")
				if time.Since(start) < 31*time.Minute {
					t.Errorf("another candidate leads %v after the panic", time.Since(start))
				}
			})
		})
	}
	// For the race detector: the renewals still own what they write.
	t.Run("panic while a renewal is on its way", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			sent := make(chan struct{})
			s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				r, err := send(ctx)
				if c.Op == "swap" && c.Prev.Attempt.Nonce == c.Next.Attempt.Nonce {
					close(sent)
					time.Sleep(time.Second)
				}
				return r, err
			})
			defer func() { recover(); pass(time.Minute) }()
			s.e.Run(t.Context(), func(context.Context, *elector.Lease) error { <-sent; panic("a bug") })
		})
	})
	// A creation in doubt can be applied at any later time: see TestLateCreation.
	t.Run("created in doubt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			f, b := fault.Wrap(s.Handle())
			f.Next("swap", fault.ReplyLost)
			e := join(t, b, o)
			l := win(t, e)
			f.Always(fault.Hang)
			<-l.Context().Done()
			f.Always(nil)
			again := campaign(t, e)
			pass(time.Minute)
			isNot(t, again, "a lease whose creation was in doubt is retaken at once")
			if r, _ := backends.Decode("bubble", s.Get("bubble")); r.Vacant() {
				t.Error("a lease whose creation was in doubt is released")
			}
			wait(t, again, "the candidate leads in the end")
		})
	})
}

// A campaign waits for the telling of the last lease, but not longer than for its
// context.
func TestCampaignAfterDeposition(t *testing.T) {
	for name, call := range map[string]func(e *elector.Elector, ctx context.Context) error{
		"Campaign":    func(e *elector.Elector, ctx context.Context) error { _, err := e.Campaign(ctx); return err },
		"TryCampaign": func(e *elector.Elector, ctx context.Context) error { _, err := e.TryCampaign(ctx); return err },
		"Run": func(e *elector.Elector, ctx context.Context) error {
			return e.Run(ctx, func(context.Context, *elector.Lease) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, elector.Options{ReleaseTimeout: time.Hour}, func(t *testing.T, s *stage) {
				l := win(t, s.e)
				s.store.Depose("bubble")
				<-l.Context().Done()
				s.fault.Always(fault.Hang)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if err := call(s.e, ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				s.plain()
				pass(time.Minute) // the telling goes on
				if !s.vacant() {
					t.Error("the store was not told")
				}
			})
		})
	}
}

// What a lease is lost for is known also when a renewal hangs until its end.
func TestCauseOfAHungRenewal(t *testing.T) {
	o := elector.Options{TTL: 10 * time.Second, RenewEvery: 4500 * time.Millisecond, RequestTimeout: 4500 * time.Millisecond}
	onStage(t, o, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		s.fault.Always(fault.Hang)
		<-l.Context().Done()
		if err := l.Check(); !errors.Is(err, elector.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// A store that says conflict although nothing has changed is not asked without a
// pause.
func TestReleaseRefused(t *testing.T) {
	onStage(t, elector.Options{ReleaseTimeout: time.Minute}, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		before := s.fault.Count("swap")
		s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "swap" {
				return backends.Record{}, backends.ErrConflict
			}
			return send(ctx)
		})
		if err := l.Release(t.Context()); err == nil {
			t.Error("Resign returns nil although the store refuses")
		}
		if n := s.fault.Count("swap") - before; n > 60 {
			t.Errorf("%d releases in a minute", n)
		}
	})
}

// A campaign that is cancelled while its write is under way leaves no unused
// record behind.
func TestCancelledCampaign(t *testing.T) {
	for name, write := range map[string]func(release <-chan struct{}) fault.Fault{
		"answered": fault.Hold,
		"answer lost": func(release <-chan struct{}) fault.Fault {
			return func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				<-release
				return fault.ReplyLost(ctx, c, send)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, elector.Options{TTL: time.Hour}, func(t *testing.T, s *stage) {
				release := make(chan struct{})
				s.fault.Next("swap", write(release))
				ctx, cancel := context.WithCancel(t.Context())
				over := begin(func() error { _, err := s.e.Campaign(ctx); return err })
				pass(time.Second)
				cancel()
				if err := wait(t, over, "Campaign returns"); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				close(release)
				if err := s.e.Close(); err != nil {
					t.Error(err)
				}
				if !s.vacant() || s.vacated.Load() != 1 {
					t.Errorf("a campaign that was cancelled has told the store %d times that its record is vacant", s.vacated.Load())
				}
			})
		})
	}
}

// Being told to stop while it waits is no failure of a worker; a deadline is one.
func TestRunStoppedWhileItWaits(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		win(t, join(t, s.store.Handle(), elector.Options{ID: "holder"}))
		ctx, cancel := context.WithCancel(t.Context())
		ran := begin(func() error { return s.e.Run(ctx, s.work) })
		pass(time.Second)
		cancel()
		if err := wait(t, ran, "Run returns"); err != nil {
			t.Errorf("Run that was told to stop while it waited: %v", err)
		}
		timed, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.e.Run(timed, s.work)
		var held *elector.HeldError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || held.Leader.ID != "holder" {
			t.Errorf("Run whose deadline passed: %v", err)
		}
		timed, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.fault.Always(fault.Fails(backends.ErrReadOnly))
		if _, err := s.e.Campaign(timed); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, elector.ErrReadOnly) {
			t.Errorf("Campaign whose deadline passed: %v", err)
		}
		s.plain()
		closed := begin(func() error { return s.e.Run(t.Context(), s.work) })
		pass(time.Second)
		s.e.Close()
		if err := wait(t, closed, "Run returns"); err != nil {
			t.Errorf("Run that was closed while it waited: %v", err)
		}
	})
}
