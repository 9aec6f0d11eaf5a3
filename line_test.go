package elector_test

import (
	"context"
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

// placeIn returns the place in line.
func placeIn(t *testing.T, s *memory.Store) (place string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := s.Handle()
	done := begin(func() error {
		return b.WatchLine(ctx, "bubble", func(backends.Record) {}, func(p string) { place = p })
	})
	pass(time.Millisecond)
	cancel()
	wait(t, done, "WatchLine returns")
	return place
}

// setPlace replaces the place in line, as another process does.
func setPlace(t *testing.T, s *memory.Store, next string) {
	t.Helper()
	if err := s.Handle().SwapPlace(t.Context(), "bubble", placeIn(t, s), next); err != nil {
		t.Fatal(err)
	}
	pass(time.Millisecond)
}

// places returns how often the candidates have written a place.
func (c *crowd) places() (n int) {
	for _, f := range c.faults {
		n += f.Count("place")
	}
	return n
}

// One of those who wait has the place in line, and leads at once after a release.
func TestLine(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}
	for _, n := range []int{1, 10, 50} {
		t.Run(fmt.Sprintf("%d waiting", n), func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				c := s.crowd(o, true, names(n)...)
				pass(10 * time.Minute)
				resign, writes, before := s.e.Resign, 1, 0
				for range min(n, 5) {
					if w := c.places() - before; w < 1 || w > 3 {
						t.Errorf("in a tenure %d candidates write the place %d times", n, w)
					}
					place := placeIn(t, s.store)
					loads, swaps := c.counts()
					start := time.Now()
					if err := resign(t.Context()); err != nil {
						t.Fatal(err)
					}
					leader := wait(t, c.won, "the successor leads")
					if by := <-c.by; time.Since(start) > 0 || !strings.HasSuffix(place, " "+by) {
						t.Errorf("%s leads after %v, and the place was %q", by, time.Since(start), place)
					}
					l, w := c.counts()
					if l, w = l-loads, w-swaps; l != 0 || w != writes {
						t.Errorf("the handover costs the candidates %d reads and %d writes, not 0 and %d", l, w, writes)
					}
					before = c.places()
					resign, writes = leader.Resign, 2 // the leader is one of them now
					pass(3 * time.Second)
				}
			})
		})
	}
	t.Run("dead", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			c := s.crowd(o, true, names(5)...)
			setPlace(t, s.store, l.Token().String()+" gone")
			pass(time.Minute)
			if w := c.places(); w != 0 {
				t.Errorf("the place was taken, and the candidates write %d times", w)
			}
			start := time.Now()
			s.e.Resign(t.Context())
			wait(t, c.by, "another candidate leads")
			if took := time.Since(start); took < 50*time.Millisecond || took > 60*time.Millisecond {
				t.Errorf("it leads after %v, not after a head start of 50 ms", took)
			}
		})
	})
	t.Run("a lie", func(t *testing.T) {
		for _, lie := range []string{"of yesterday", "1", "1 ", "x c0", "0 c0", "99999999999999999999 c0", "\x00", " c0", "c0"} {
			onStage(t, o, func(t *testing.T, s *stage) {
				l := win(t, s.e)
				if lie == "of yesterday" {
					lie = (l.Token() - 1).String() + " c0"
				}
				c := s.crowd(o, true, names(2)...)
				setPlace(t, s.store, lie)
				pass(time.Minute)
				if got := placeIn(t, s.store); !strings.HasPrefix(got, l.Token().String()+" ") {
					t.Errorf("a minute after the place was %q it is %q", lie, got)
				}
				s.e.Resign(t.Context())
				wait(t, c.by, "a candidate leads")
			})
		}
	})
	t.Run("a lie about one that leads", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			c := s.crowd(o, true, "c0")
			setPlace(t, s.store, l.Token().String()+" "+s.e.ID())
			start := time.Now()
			s.e.Resign(t.Context())
			if wait(t, c.by, "the other candidate leads"); time.Since(start) > 60*time.Millisecond {
				t.Errorf("after %v", time.Since(start))
			}
		})
	})
	t.Run("after a crash", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "c0")
			pass(time.Second)
			s.fault.Always(fault.Hang)
			loads, _ := c.counts()
			start := time.Now()
			wait(t, c.by, "the candidate leads")
			if took := time.Since(start); took < 60*time.Second {
				t.Errorf("the successor of a leader that crashed leads after %v", took)
			}
			if l, _ := c.counts(); l == loads {
				t.Error("the successor of a leader that crashed takes over without a read")
			}
			s.plain()
		})
	})
	t.Run("of a record that is gone", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			c := s.crowd(o, true, "c0")
			pass(time.Second)
			if got, want := placeIn(t, s.store), l.Token().String()+" c0"; got != want {
				t.Fatalf("the place is %q, not %q", got, want)
			}
			c.faults["c0"].Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
				if call.Op == "swap" && call.Prev.Exists() {
					return backends.Record{}, fault.ErrInjected
				}
				return send(ctx)
			})
			s.e.Resign(t.Context())
			pass(time.Second)
			s.store.Delete("bubble")
			start := time.Now()
			pass(30 * time.Second)
			loads, _ := c.counts()
			wait(t, c.by, "the candidate leads")
			if took := time.Since(start); took < 60*time.Second {
				t.Errorf("the successor of a vacancy that vanished leads after %v", took)
			}
			if l, _ := c.counts(); l == loads {
				t.Error("the successor of a vacancy that vanished takes over without a read")
			}
		})
	})
	t.Run("named beats the place", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, names(9)...)
			pass(time.Second)
			first := placeIn(t, s.store)
			named := "c3"
			if strings.HasSuffix(first, " c3") {
				named = "c4"
			}
			start := time.Now()
			if err := s.e.ResignTo(t.Context(), named); err != nil {
				t.Fatal(err)
			}
			if by := wait(t, c.by, "the candidate that was named leads"); by != named || time.Since(start) > 0 {
				t.Errorf("%s leads after %v, not %s; the place was %q", by, time.Since(start), named, first)
			}
		})
	})
	t.Run("a priority beats the place", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, names(9)...)
			pass(time.Second)
			high := o
			high.Priority = 1
			first := s.crowd(high, true, "high")
			pass(time.Second)
			start := time.Now()
			s.e.Resign(t.Context())
			if wait(t, first.by, "the candidate with a priority leads"); time.Since(start) > 0 {
				t.Errorf("it leads after %v", time.Since(start))
			}
			isNot(t, c.by, "another candidate leads")
			if n := first.places(); n != 0 {
				t.Errorf("a candidate with a priority writes a place %d times", n)
			}
		})
	})
	t.Run("the campaign ends", func(t *testing.T) {
		for name, f := range map[string]fault.Fault{"": nil, ", and the reply is lost": fault.ReplyLost} {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				broken, b := fault.Wrap(s.store.Handle())
				if f != nil {
					broken.Next("place", f)
				}
				e := join(t, b, o)
				ctx, cancel := context.WithCancel(t.Context())
				done := begin(func() error { _, err := e.Campaign(ctx); return err })
				pass(time.Second)
				if got := placeIn(t, s.store); got == "" {
					t.Errorf("the candidate has not taken the place%s", name)
				}
				cancel()
				wait(t, done, "Campaign returns")
				pass(time.Second)
				if got := placeIn(t, s.store); got != "" {
					t.Errorf("the place of a candidate that campaigns no more is %q%s", got, name)
				}
			})
		}
	})
	t.Run("sick later", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			var sick atomic.Bool
			var asked atomic.Int32
			frail := o
			frail.Healthy = func(context.Context) error {
				asked.Add(1)
				if sick.Load() {
					return errors.New("sick")
				}
				return nil
			}
			s.crowd(frail, true, "frail")
			pass(5 * time.Minute)
			if got := placeIn(t, s.store); !strings.HasSuffix(got, " frail") {
				t.Fatalf("the place is %q", got)
			}
			if n := asked.Load(); n < 20 || n > 32 {
				t.Errorf("in 5 minutes it was asked for its health %d times", n)
			}
			sick.Store(true)
			pass(time.Minute)
			if got := placeIn(t, s.store); got != "" {
				t.Errorf("a candidate that is not healthy has the place: %q", got)
			}
			s.crowd(o, true, "well")
			pass(time.Minute)
			sick.Store(false)
			pass(time.Minute)
			if got := placeIn(t, s.store); !strings.HasSuffix(got, " well") {
				t.Errorf("the place is %q", got)
			}
		})
	})
	t.Run("stands back", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			s.end()
			s.run()
			c := s.crowd(o, true, "c0")
			pass(time.Second)
			c.faults["c0"].Always(fault.Hang)
			pass(time.Second)
			asked := s.asks(t.Context(), 0, "")
			wait(t, asked, "RequestResign returns")
			setPlace(t, s.store, "")
			pass(30 * time.Second)
			if got := placeIn(t, s.store); strings.HasSuffix(got, s.e.ID()) {
				t.Errorf("a candidate that stands back has the place: %q", got)
			}
			c.faults["c0"].Always(nil)
			wait(t, c.by, "the other candidate leads")
			pass(time.Second)
			if got := placeIn(t, s.store); !strings.HasSuffix(got, s.e.ID()) {
				t.Errorf("when another one leads, the place is %q", got)
			}
		})
	})
	t.Run("twins", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c, d := s.crowd(o, true, "twin"), s.crowd(o, true, "twin")
			pass(time.Hour)
			if n := c.places() + d.places(); n > 3 {
				t.Errorf("candidates with one ID write the place %d times", n)
			}
			s.e.Resign(t.Context())
			select {
			case <-c.by:
				isNot(t, d.by, "the other one leads too")
			case <-d.by:
				isNot(t, c.by, "the other one leads too")
			}
		})
	})
	t.Run("the write fails", func(t *testing.T) {
		for name, f := range map[string]fault.Fault{
			"the request is lost": fault.RequestLost, "the store fails": fault.Fails(backends.ErrUnavailable), "it hangs": fault.Hang,
		} {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				c := s.crowd(o, true, "c0")
				c.faults["c0"].Next("place", f)
				pass(5 * time.Second)
				if got := placeIn(t, s.store); got != "" {
					t.Errorf("%s: the place is %q", name, got)
				}
				pass(time.Minute)
				if got := placeIn(t, s.store); !strings.HasSuffix(got, " c0") {
					t.Errorf("%s: a minute later the place is %q", name, got)
				}
			})
		}
	})
	t.Run("no write works", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "c0")
			for range 1000 {
				c.faults["c0"].Next("place", fault.Fails(backends.ErrUnavailable))
			}
			pass(time.Hour)
			if n := c.places(); n < 5 || n > 12 {
				t.Errorf("in an hour it is tried %d times", n)
			}
		})
	})
	t.Run("two take turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			var faults []*fault.Backend
			var leads *elector.Lease
			var both []*elector.Elector
			for range 2 {
				f, b := fault.Wrap(s.Handle())
				faults, both = append(faults, f), append(both, join(t, b, o))
			}
			leads = win(t, both[0])
			for tenure := range 10 {
				next := campaign(t, both[(tenure+1)%2])
				pass(10 * time.Minute)
				start := time.Now()
				if err := leads.Resign(t.Context()); err != nil {
					t.Fatal(err)
				}
				leads = wait(t, next, "the other one leads")
				if took := time.Since(start); took > 0 {
					t.Errorf("it leads after %v", took)
				}
				if n := faults[0].Count("place") + faults[1].Count("place"); n != tenure+1 {
					t.Fatalf("in %d tenures the place was written %d times", tenure+1, n)
				}
			}
			leads.Resign(t.Context())
		})
	})
	t.Run("while the write hangs", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "c0")
			c.faults["c0"].Next("place", fault.Hang)
			pass(300 * time.Millisecond)
			start := time.Now()
			s.e.Resign(t.Context())
			if wait(t, c.by, "the candidate leads"); time.Since(start) > 10*time.Millisecond {
				t.Errorf("it leads after %v", time.Since(start))
			}
		})
	})
}
