package elector_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// terms returns the history as text: who led, and why not any longer.
func (s *stage) terms() string {
	s.t.Helper()
	terms, err := s.candidate(elector.Options{}).Operator().History(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var texts []string
	last := uint64(0)
	for _, term := range terms {
		if term.Token <= last {
			s.t.Errorf("token %d after %d", term.Token, last)
		}
		last = term.Token
		text := term.ID + " " + term.Reason
		if !term.Start.IsZero() && !term.End.IsZero() {
			text += " " + term.End.Sub(term.Start).Round(time.Second).String()
		}
		texts = append(texts, strings.TrimSpace(text))
	}
	return strings.Join(texts, ", ")
}

// The record keeps who led, for how long, and why no longer.
func TestHistory(t *testing.T) {
	o := func(id string) elector.Options {
		return elector.Options{ID: id, TTL: time.Minute, RenewEvery: 10 * time.Second}
	}
	expect := func(t *testing.T, s *stage, want string) {
		t.Helper()
		got := s.terms()
		if _, got, _ = strings.Cut(got, ", "); got != want { // without the one that made the record
			t.Errorf("the history is %q, not %q", got, want)
		}
	}
	t.Run("ends", func(t *testing.T) {
		var sick atomic.Bool
		mine := o("mine")
		mine.Healthy = func(context.Context) error {
			if sick.Load() {
				return errors.New("sick")
			}
			return nil
		}
		onStage(t, mine, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			expect(t, s, "mine")
			pass(5 * time.Second)
			l.Release(t.Context())
			expect(t, s, "mine resigned 5s")

			l = win(t, s.e)
			asked := s.asks(t.Context(), 0, "")
			<-l.Context().Done()
			l.Release(t.Context())
			if err := wait(t, asked, "RequestResign returns"); err != nil {
				t.Error(err)
			}
			expect(t, s, "mine resigned 5s, mine requested 10s")

			l = win(t, s.e)
			sick.Store(true)
			<-l.Context().Done()
			pass(time.Second)
			sick.Store(false)
			expect(t, s, "mine resigned 5s, mine requested 10s, mine unhealthy 10s")

			l = win(t, s.e)
			s.fault.Always(fault.Hang)
			other := s.candidate(o("other"))
			wait(t, campaign(t, other), "another one leads")
			expect(t, s, "mine resigned 5s, mine requested 10s, mine unhealthy 10s, mine expired 1m6s, other")
			s.plain()
			_ = l
		})
	})
	t.Run("in Run", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			s.end()
			s.run()
			if err := wait(t, s.asks(t.Context(), 0, ""), "RequestResign returns"); err != nil {
				t.Error(err)
			}
			expect(t, s, "mine requested 10s")
			l := wait(t, s.leads, "Run leads again")
			s.store.Depose("bubble")
			<-l.Context().Done()
			pass(time.Second)
			expect(t, s, "mine requested 10s, mine deposed 0s")
		})
	})
	t.Run("renewals do not write it", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			win(t, s.e)
			before := s.record().Extensions
			pass(time.Hour)
			if after := s.record().Extensions; after != before {
				t.Errorf("%s became %s", before, after)
			}
		})
	})
	t.Run("the token has the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{t: t, store: memory.NewStore()}
			pass(30 * 365 * 24 * time.Hour) // to a time of day that tokens may have
			began := map[string]time.Time{}
			for i, least := range []elector.Token{0, 0, 5e15, 0} { // the third one is of the year 2128
				mine := o(fmt.Sprint(i))
				mine.MinToken = least
				e := s.candidate(mine)
				began[mine.ID] = time.Now()
				win(t, e)
				if value, ok := s.record().Extensions.Get("k_history"); i == 0 && ok {
					t.Errorf("the first term is kept as %q, besides the record", value)
				}
				terms, err := e.Operator().History(t.Context())
				if err != nil || len(terms) != i+1 {
					t.Fatalf("the history is %v (%v)", terms, err)
				}
				for _, term := range terms {
					if late := term.Start.Sub(began[term.ID]); late < -time.Second || late > 2*time.Second {
						t.Errorf("%v began at %v, not %v", term, term.Start, began[term.ID])
					}
				}
				pass(time.Minute)
				e.Resign(t.Context())
			}
		})
	})
	t.Run("bounds", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			most := 0
			for i := range 30 {
				e := s.candidate(o(fmt.Sprintf("%d %s", i, strings.Repeat("é", i))))
				for range 2 {
					win(t, e).Release(t.Context())
				}
				value, _ := s.record().Extensions.Get("k_history")
				if len(value) > 512 {
					t.Fatalf("the history has %d bytes: %s", len(value), value)
				}
				most = max(most, strings.Count(s.terms(), ",")+1)
			}
			if most != 8 {
				t.Errorf("the history has had %d terms, not 8", most)
			}
		})
	})
	t.Run("room", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			const room = backends.MaxExtensions - len("k_other") - len("k_history") - 50
			change(t, s.store, func(r *backends.Record) { r.Extensions = "" })
			change(t, s.store, set(t, "k_other", strings.Repeat("x", room)))
			for range 5 {
				win(t, s.e).Release(t.Context())
			}
			if got := s.terms(); got != "mine resigned 0s" {
				t.Errorf("where there is room for one term the history is %q", got)
			}
			change(t, s.store, func(r *backends.Record) { r.Extensions = "" })
			change(t, s.store, set(t, "k_other", strings.Repeat("x", backends.MaxExtensions-len("k_other"))))
			win(t, s.e).Release(t.Context())
			if got := s.terms(); got != "unknown" {
				t.Errorf("where there is no room the history is %q", got)
			}
			if x := s.record().Extensions; !strings.Contains(string(x), strings.Repeat("x", room)) {
				t.Error("another kept extension was dropped")
			}
		})
	})
	t.Run("other versions", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			win(t, s.e).Release(t.Context())
			// A version that keeps no history leads, and resigns; and again, and is gone.
			change(t, s.store, func(r *backends.Record) { r.Token += 5; r.Attempt.Nonce = "old" })
			expect(t, s, "mine resigned 0s, unknown")
			win(t, s.e).Release(t.Context())
			expect(t, s, "mine resigned 0s, unknown, mine resigned 0s")
			change(t, s.store, func(r *backends.Record) { r.Token += 5; r.Attempt.Nonce = "old"; r.Holder = "old" })
			expect(t, s, "mine resigned 0s, unknown, mine resigned 0s, old")
			win(t, s.e)
			expect(t, s, "mine resigned 0s, unknown, mine resigned 0s, old expired, mine")
		})
	})
	// Only the record's own acquisition goes on.
	t.Run("a crash, and a version that keeps no history", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			win(t, s.e)
			s.fault.Always(fault.Hang)
			change(t, s.store, func(r *backends.Record) { r.Token += 5; r.Attempt.Nonce = "old"; r.Holder = "old" })
			expect(t, s, "mine unknown, old")
			change(t, s.store, func(r *backends.Record) { r.Attempt.Sequence++; r.Holder = "" })
			expect(t, s, "mine unknown, unknown")
			win(t, s.candidate(o("next")))
			expect(t, s, "mine unknown, unknown, next")
			s.plain()
		})
	})
	t.Run("a store that takes no writes", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			win(t, s.e)
			s.fault.Always(fault.Hang)
			f, b := fault.Wrap(s.store.Handle())
			f.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				if c.Op == "swap" {
					return backends.Record{}, backends.ErrUnavailable
				}
				return send(ctx)
			})
			next := campaign(t, join(t, b, o("next")))
			pass(20 * time.Minute)
			works := time.Now()
			f.Always(nil)
			wait(t, next, "the candidate leads")
			terms, err := s.candidate(o("reader")).Operator().History(t.Context())
			if err != nil || len(terms) < 2 {
				t.Fatalf("%v, %v", terms, err)
			}
			former, latter := terms[len(terms)-2], terms[len(terms)-1]
			if former.End.Before(works) || latter.Start.Before(works) {
				t.Errorf("the term of %s ended at %v and that of %s began at %v; the store took no write before %v", former.ID, former.End, latter.ID, latter.Start, works)
			}
			s.plain()
		})
	})
	t.Run("times that JSON cannot hold", func(t *testing.T) {
		for _, at := range []string{"zzzzzzzzzz", "-zzzzzzzzzz", "zzzzzzzzzzzzzzzzzzzz"} {
			onStage(t, o("mine"), func(t *testing.T, s *stage) {
				change(t, s.store, set(t, "k_history", "1 "+at+" "+at+" r a"))
				terms, err := s.e.Operator().History(t.Context())
				if err != nil || terms[0].ID != "a" {
					t.Errorf("%v, %v", terms, err)
				}
				if _, err := json.Marshal(terms); err != nil {
					t.Error(err)
				}
			})
		}
	})
	// What is printed differs between versions of Go.
	t.Run("a rune that is not printed", func(t *testing.T) {
		onStage(t, o("mine"), func(t *testing.T, s *stage) {
			change(t, s.store, set(t, "k_history", "1  2 r host-\ue000"))
			win(t, s.e)
			if got := s.terms(); !strings.HasPrefix(got, "host-? resigned") {
				t.Errorf("the history is %q", got)
			}
		})
	})
	t.Run("malformed", func(t *testing.T) {
		for _, value := range []string{"", ";", "x", "1 2 3 4", "- - - - -", "0    a", "zzzzzzzzzzzzzzzz    a", "%zz", "1 2 3 r %ff", "1 2 3 r %1b", "1 2 3 r a;", strings.Repeat("1 2 3 r a;", 150)} {
			onStage(t, o("mine"), func(t *testing.T, s *stage) {
				change(t, s.store, set(t, "k_history", value))
				win(t, s.e)
				if got := s.terms(); !strings.HasSuffix(got, "unknown, mine") {
					t.Errorf("after %.20q the history is %q", value, got)
				}
			})
		}
	})
}
