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
	"github.com/elector-go/elector/internal/fault"
)

// touch gives the record a new version, and nothing else: as a label does that is added
// to the object that holds it.
func touch(s *stage) { s.store.Put("bubble", s.store.Get("bubble")) }

// restore puts the record back after another state, as a backup does.
func restore(s *stage) {
	content := s.store.Get("bubble")
	s.store.Delete("bubble")
	s.store.Put("bubble", content)
}

// A new version of the same write is no sign of life, and no sign of another leader. If
// it may be a restored record, it is both.
func TestTouched(t *testing.T) {
	o := elector.Options{TTL: 10 * time.Minute, RenewEvery: time.Minute}
	t.Run("resigned", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			touch(s)
			if err := s.e.Resign(t.Context()); err != nil || !s.vacant() {
				t.Errorf("Resign returns %v, and the record is %+v", err, s.record())
			}
		})
	})
	t.Run("restored and resigned", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			s.fault.CutWatches(errors.New("the connection is gone")) // a watch may see the record between
			synctest.Wait()
			restore(s)
			for range 2 {
				err := s.e.Resign(t.Context())
				if err == nil || !strings.Contains(err.Error(), "put it back") || s.vacant() {
					t.Errorf("Resign of a record that may have been restored returns %v", err)
				}
			}
		})
	})
	t.Run("restored long before, and resigned", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			old := s.store.Get("bubble")
			change(t, s.store, set(t, "t_request", "1"))
			s.store.Put("bubble", old)
			pass(time.Hour)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			change(t, s.store, set(t, "t_request", "2"))
			if err := s.e.Resign(t.Context()); err != nil || !s.vacant() {
				t.Errorf("Resign returns %v, and the record is %+v", err, s.record())
			}
		})
	})
	for release, answer := range map[string]error{"an unanswered release": fault.ErrInjected, "a refused release": backends.ErrDenied} {
		t.Run("restored after "+release, func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				s.fault.CutWatches(errors.New("the connection is gone"))
				next := join(t, s.store.Handle(), elector.Options{})
				s.fault.Next("swap", func(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
					old := s.store.Get("bubble")
					if _, err := send(ctx); err != nil {
						t.Error(err)
					}
					win(t, next)
					s.store.Put("bubble", old)
					change(t, s.store, set(t, "t_request", "1"))
					return backends.Record{}, answer
				})
				for range 2 {
					if err := s.e.Resign(t.Context()); err == nil || s.vacant() {
						t.Errorf("another candidate leads, and Resign of the record that it had replaced returns %v", err)
					}
				}
			})
		})
	}
	t.Run("restored while a lost lease is released", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := s.run()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for range s.e.Observe(ctx) {
				}
			}()
			pass(30 * time.Second)
			s.fault.Always(fault.RequestLost)
			s.fault.Next("swap", fault.ReplyLost) // only the observer's watch shows this renewal
			pass(o.TTL)
			if err := l.Check(); !errors.Is(err, elector.ErrLost) {
				t.Fatal(err)
			}
			s.plain()
			s.fault.Next("swap", func(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
				restore(s)
				return send(ctx)
			})
			s.stop()
			s.end()
			wait(t, s.ran, "Run returns")
			s.stop = nil
			pass(time.Minute)
			if n := s.released.Load(); n != 0 || s.vacant() {
				t.Errorf("%d more releases were sent, and the record is %+v", n, s.record())
			}
		})
	})
	t.Run("an older state and resigned", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			old := s.store.Get("bubble")
			pass(90 * time.Second)
			s.store.Put("bubble", old)
			if err := s.e.Resign(t.Context()); !errors.Is(err, elector.ErrTokenRegressed) || s.vacant() {
				t.Errorf("Resign of a record that went back returns %v", err)
			}
		})
	})
	for name, restored := range map[string]bool{"after a crash": false, "restored after a crash": true} {
		t.Run(name, func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				r := s.record()
				r.Holder, r.TTL, r.RenewEvery, r.Attempt.Nonce = "dead", o.TTL, o.RenewEvery, "dead"
				s.store.Put("bubble", backends.Encode("bubble", r))
				next := s.rival()
				for range 15 { // within C and a renewal interval
					pass(50 * time.Second)
					if touch(s); restored {
						restore(s)
					}
				}
				select {
				case <-next:
					if restored {
						t.Error("a candidate leads, and the record was restored within C")
					}
				default:
					if !restored {
						t.Error("no candidate leads: what does not change the record prolongs the lease of a dead leader")
					}
					wait(t, next, "a candidate leads")
				}
			})
		})
	}
	t.Run("lost later", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := s.run()
			pass(30 * time.Second)
			touch(s)
			pass(time.Minute)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			s.stop()
			pass(o.TTL) // of ReleaseTimeout too
			pass(time.Minute)
			if err := l.Check(); !errors.Is(err, elector.ErrLost) {
				t.Fatal(err)
			}
			s.end()
			wait(t, s.ran, "Run returns")
			s.stop = nil
			pass(time.Second)
			if !s.vacant() {
				t.Error("the work has returned, and the record still names its leader")
			}
		})
	})
}
