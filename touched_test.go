package elector_test

import (
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
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
