package elector_test

import (
	"context"
	"errors"
	"fmt"
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

// What a release may meet, and how long it then takes. C is 16.5 s.
func TestReleaseMeets(t *testing.T) {
	o := elector.Options{TTL: 15 * time.Second}
	for name, c := range map[string]struct {
		meets func(t *testing.T, s *stage)
		takes time.Duration // at most
	}{
		"a request": {func(t *testing.T, s *stage) { change(t, s.store, set(t, "t_request", "1 n other by")) }, 0},
		"a bid":     {func(t *testing.T, s *stage) { change(t, s.store, set(t, "t_bid", "0 nonce other")) }, 0},
		"its own renewal in doubt": {func(_ *testing.T, s *stage) {
			s.fault.Next("swap", fault.ReplyLost)
			s.fault.Next("load", fault.RequestLost)
			pass(5 * time.Second)
		}, 0},
		"an answer that is lost": {func(_ *testing.T, s *stage) { s.fault.Next("swap", fault.ReplyLost) }, 0},
		"a refusal of 2 s": {func(_ *testing.T, s *stage) {
			s.fault.Always(fault.Fails(backends.ErrDenied))
			time.AfterFunc(2*time.Second, s.plain)
		}, 4500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				l := win(t, s.e)
				c.meets(t, s)
				start := time.Now()
				err := l.Release(t.Context())
				if took := time.Since(start); err != nil || !s.vacant() || took > c.takes {
					t.Errorf("after %v Release returns %v, and the record is %+v", took, err, s.record())
				}
			})
		})
	}
}

// A release is sent only before the lease that it ends could be over, and then it reads what
// has come of one that may still be applied.
func TestReleaseInTime(t *testing.T) {
	o := elector.Options{TTL: 15 * time.Second, ReleaseTimeout: time.Minute}
	t.Run("the store is away", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			s.fault.Always(fault.RequestLost)
			time.AfterFunc(20*time.Second, s.plain)
			if err := l.Release(t.Context()); err == nil || s.released.Load() != 0 || s.vacant() {
				t.Errorf("Release returns %v, and %d releases were sent after H", err, s.released.Load())
			}
		})
	})
	t.Run("applied later", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			release, applied := make(chan struct{}), make(chan struct{})
			s.fault.Always(fault.RequestLost)
			s.fault.Next("swap", fault.Late(release, applied))
			time.AfterFunc(10*time.Second, func() { s.plain(); close(release) })
			if err := l.Release(t.Context()); err != nil || !s.vacant() {
				t.Errorf("Release whose write was applied later returns %v", err)
			}
			<-applied
		})
	})
	t.Run("no longer than that", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 15 * time.Second, ReleaseTimeout: time.Hour}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			s.fault.Always(fault.RequestLost)
			time.AfterFunc(20*time.Second, s.plain)
			start := time.Now()
			if err := l.Release(t.Context()); err == nil || time.Since(start) > 20*time.Second {
				t.Errorf("after %v Release returns %v", time.Since(start), err)
			}
			win(t, s.e)
			if took := time.Since(start); took > 25*time.Second {
				t.Errorf("%v after the store was back the candidate leads again", took-20*time.Second)
			}
		})
	})
	t.Run("a younger renewal", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 15 * time.Second, ReleaseTimeout: time.Minute}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				if c.Op == "load" {
					return fault.Hang(ctx, c, send)
				}
				return fault.HangApplied(ctx, c, send) // the renewals are applied, and not answered
			})
			time.AfterFunc(l.Remaining()+time.Second/2, s.plain)
			pass(l.Remaining() - time.Second/2)
			err := l.Release(t.Context())
			if err != nil || !s.vacant() {
				t.Errorf("Release returns %v, and the record is %+v", err, s.record())
			}
		})
	})
	t.Run("the worker returns late", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 15 * time.Second, ReleaseTimeout: time.Second}, func(t *testing.T, s *stage) {
			s.run()
			s.stop()
			pass(20 * time.Second)
			s.end()
			wait(t, s.ran, "Run returns")
			s.stop = nil
			pass(time.Second)
			if s.released.Load() != 0 || s.vacant() {
				t.Errorf("a worker has returned after H, and %d releases were sent", s.released.Load())
			}
		})
	})
	t.Run("in the queue", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 15 * time.Second, ReleaseTimeout: time.Minute}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			first := make(chan struct{})
			s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				if c.Op == "load" {
					<-first // the read-back of the renewal hangs, and is given up
				}
				return backends.Record{}, fault.ErrInjected
			})
			pass(13 * time.Second)
			resigned := begin(func() error { return l.Release(t.Context()) })
			pass(3 * time.Second)
			s.plain()
			close(first)
			if err := wait(t, resigned, "Release returns"); err == nil || s.released.Load() != 0 {
				t.Errorf("Release returns %v, and %d releases were sent after H", err, s.released.Load())
			}
		})
	})
	t.Run("a loss is not released", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := s.run()
			before := s.store.Get("bubble")
			change(t, s.store, func(r *backends.Record) { r.Value = "edited" })
			pass(6 * time.Second)
			if err := l.Check(); !errors.Is(err, elector.ErrLost) {
				t.Fatal(err)
			}
			s.store.Put("bubble", before)
			s.end()
			wait(t, s.leads, "Run leads again")
			if n := s.released.Load(); n != 0 {
				t.Errorf("%d releases were sent after a loss", n)
			}
		})
	})
	t.Run("an expiry is not released", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 15 * time.Second, StallTimeout: time.Second}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			pass(16 * time.Second)
			if err := l.Check(); !errors.Is(err, elector.ErrLost) {
				t.Fatal(err)
			}
			start := time.Now()
			win(t, s.e)
			if s.released.Load() != 0 || time.Since(start) > time.Second {
				t.Errorf("%d releases were sent after an expiry, and the candidate leads again after %v", s.released.Load(), time.Since(start))
			}
		})
	})
}

// A store that stood still applies a queued renewal when it goes on. Its sole candidate leads
// again soon, and does not wait for C: what is over may be taken at once.
func TestStoodStill(t *testing.T) {
	for _, still := range []time.Duration{14 * time.Second, 30 * time.Second, time.Minute} {
		t.Run(still.String(), func(t *testing.T) {
			onStage(t, elector.Options{TTL: 15 * time.Second}, func(t *testing.T, s *stage) {
				s.end()
				s.run()
				goes := make(chan struct{})
				var queued atomic.Int32
				s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
					queued.Add(1)
					select {
					case <-goes: // after its sender has given it up, too
					case <-ctx.Done():
						go func() { <-goes; send(context.WithoutCancel(ctx)) }()
						return backends.Record{}, ctx.Err()
					}
					return send(ctx)
				})
				pass(still)
				close(goes)
				s.plain()
				s.leadsWithin(8 * time.Second)
				if queued.Load() == 0 {
					t.Error("no request was queued")
				}
			})
		})
	}
}

// leadsWithin waits until the elector leads, and says so if that takes longer.
func (s *stage) leadsWithin(limit time.Duration) {
	s.t.Helper()
	start := time.Now()
	for _, err := s.e.Lease(); err != nil; _, err = s.e.Lease() {
		pass(10 * time.Millisecond)
		if time.Since(start) > time.Minute {
			s.t.Fatal("it does not lead again")
		}
	}
	if took := time.Since(start); took > limit {
		s.t.Errorf("it leads again after %v", took)
	}
}

// The first write of a takeover of what is over fails, or meets a renewal that was queued.
// What is over is still free.
func TestOverAgain(t *testing.T) {
	o := elector.Options{TTL: 15 * time.Second}
	t.Run("the first write fails", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			s.end()
			s.run()
			s.fault.Always(fault.RequestLost)
			for _, err := s.e.Lease(); err == nil; _, err = s.e.Lease() {
				pass(100 * time.Millisecond)
			}
			s.fault.Next("swap", fault.RequestLost)
			s.plain()
			s.leadsWithin(3 * time.Second)
		})
	})
	for _, still := range []time.Duration{14 * time.Second, 20 * time.Second, 24 * time.Second} {
		t.Run("writes queue for "+still.String(), func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				s.end()
				s.run()
				goes := make(chan struct{})
				s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
					if c.Op == "load" {
						return send(ctx)
					}
					select {
					case <-goes:
						return send(ctx)
					case <-ctx.Done():
						go func() { <-goes; send(context.WithoutCancel(ctx)) }()
						return backends.Record{}, ctx.Err()
					}
				})
				pass(still)
				close(goes)
				s.plain()
				s.leadsWithin(3 * time.Second)
			})
		})
	}
}

// A hand that puts back an earlier state of the record is outside of what is promised, but an
// ordinary election follows: within a minute one candidate leads, with a higher token.
func TestPutBack(t *testing.T) {
	const states = 5
	for state := range states {
		for _, bid := range []bool{false, true} {
			for _, vacant := range []bool{false, true} {
				t.Run(fmt.Sprintf("state %d, bid %v, vacant %v", state, bid, vacant), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						pass(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // so that tokens follow the time of day
						store := memory.NewStore()
						ctx, stop := context.WithCancel(t.Context())
						var mutex sync.Mutex
						var tokens []elector.Token
						var all sync.WaitGroup
						electors := []*elector.Elector{}
						for _, id := range []string{"a", "b"} {
							e := join(t, store.Handle(), elector.Options{ID: id, TTL: 15 * time.Second})
							electors = append(electors, e)
							all.Go(func() {
								for ctx.Err() == nil {
									e.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
										mutex.Lock()
										tokens = append(tokens, l.Token())
										mutex.Unlock()
										<-ctx.Done()
										return nil
									})
								}
							})
						}
						var last [][]byte
						for range states { // a handover, and the renewal after it
							pass(6 * time.Second)
							last = append(last, store.Get("bubble"))
							if vacant {
								electors[0].Resign(t.Context())
								electors[1].Resign(t.Context())
							}
						}
						store.Put("bubble", last[state])
						if bid {
							change(t, store, set(t, "t_bid", "1 nonce b"))
						}
						pass(time.Minute)
						leaders := 0
						for _, e := range electors {
							if _, err := e.Lease(); err == nil {
								leaders++
							}
						}
						if leaders != 1 {
							t.Errorf("after a minute %d candidates lead", leaders)
						}
						stop()
						all.Wait()
						for i := range tokens[1:] {
							if tokens[i+1] <= tokens[i] {
								t.Errorf("the tokens are %v", tokens)
							}
						}
					})
				})
			}
		}
	}
}
