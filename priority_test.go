package elector_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// late is a backend that pushes each state a second late.
type late struct {
	backends.Backend
	watcher backends.Watcher
}

func (l late) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return l.watcher.Watch(ctx, name, func(r backends.Record) {
		time.AfterFunc(time.Second, func() {
			if ctx.Err() == nil {
				changed(r)
			}
		})
	})
}

// A candidate with a priority announces itself, and leads next after a release.
func TestPriority(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}
	with := func(priority int) elector.Options {
		o := o
		o.Priority = priority
		return o
	}
	for _, pushed := range []bool{true, false} {
		t.Run(fmt.Sprintf("one write, pushed %v", pushed), func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				plain, first := s.crowd(o, pushed, "a", "b", "c"), s.crowd(with(1), pushed, names(20)...)
				swaps, loads := s.fault.Count("swap"), s.fault.Count("load")
				pass(10 * time.Minute)
				if _, w := plain.counts(); w != 0 {
					t.Errorf("candidates without a priority write %d times", w)
				}
				if _, w := first.counts(); w != 1 {
					t.Errorf("20 candidates with the same priority write %d times, not once", w)
				}
				if w, l := s.fault.Count("swap")-swaps, s.fault.Count("load")-loads; w != 61 || l != 1 {
					t.Errorf("in 10 minutes the leader writes %d times and reads %d times, not 60+1 and 1", w, l)
				}
				if err := s.e.Resign(t.Context()); err != nil {
					t.Fatal(err)
				}
				wait(t, first.by, "a candidate with the priority leads")
				isNot(t, plain.by, "a candidate without a priority leads")
			})
		})
	}
	t.Run("the highest leads next", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			s.crowd(o, true, "a", "b", "c")
			s.crowd(with(1), true, "d", "e")
			pass(time.Minute)
			c := s.crowd(with(7), true, "high")
			pass(time.Minute)
			low := s.crowd(with(3), true, "f", "g")
			pass(time.Minute)
			if _, w := low.counts(); w != 0 {
				t.Errorf("a candidate announces itself over a higher one: %d writes", w)
			}
			start := time.Now()
			if err := s.e.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			if wait(t, c.by, "the candidate with the highest priority leads"); time.Since(start) > 0 {
				t.Errorf("it leads after %v", time.Since(start))
			}
		})
	})
	for _, pushed := range []bool{true, false} {
		t.Run(fmt.Sprintf("after a crash, pushed %v", pushed), func(t *testing.T) {
			for _, dead := range []bool{false, false, false, true} { // one of 21 leads by chance
				onStage(t, o, func(t *testing.T, s *stage) {
					win(t, s.e)
					plain, high := s.crowd(o, pushed, names(20)...), s.crowd(with(7), pushed, "high")
					pass(time.Minute)
					s.fault.Always(fault.Hang)
					if dead {
						high.faults["high"].Always(fault.Hang)
					}
					start := time.Now()
					next, head := high, time.Duration(0)
					if dead {
						next, head = plain, 500*time.Millisecond
						if !pushed {
							head = o.RenewEvery
						}
					}
					wait(t, next.by, "the candidate that should lead does")
					pass(o.RenewEvery)
					if took := time.Since(start); took < 56*time.Second || took > 66*time.Second+o.RenewEvery+head+time.Second {
						t.Errorf("dead %v: it leads after %v", dead, took)
					}
					if !dead {
						isNot(t, plain.by, "a candidate without a priority leads")
					}
					s.plain()
					high.faults["high"].Always(nil)
				})
			}
		})
	}
	t.Run("TryCampaign while the leader lives", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			s.crowd(with(7), true, "high")
			pass(time.Minute)
			start, held := time.Now(), (*elector.HeldError)(nil)
			_, err := s.candidate(o).TryCampaign(t.Context())
			if !errors.As(err, &held) || held.Leader.ID == "" || held.Reason != "" || time.Since(start) > time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		})
	})
	t.Run("named beats announced", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "a", "b", "c")
			s.crowd(with(7), true, "high")
			pass(time.Minute)
			if err := s.e.ResignTo(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			if by := wait(t, c.by, "the candidate that was named leads"); by != "b" {
				t.Errorf("%s leads", by)
			}
		})
	})
	t.Run("withdrawn", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			high, low := s.crowd(with(7), true, "high"), s.crowd(with(1), true, "low")
			pass(time.Minute)
			if err := high.all["high"].SetPriority(0); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			s.e.Resign(t.Context())
			wait(t, low.by, "the other candidate leads")
			pass(time.Minute)
			if got := bidIn(s.record().Extensions); got != "" && !strings.HasPrefix(got, "0 ") {
				t.Errorf("a candidate with priority 0 has the bid %q", got)
			}
		})
	})
	t.Run("raised", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "a", "b", "c")
			c.all["c"].SetPriority(1)
			pass(time.Minute)
			s.e.Resign(t.Context())
			if by := wait(t, c.by, "a candidate leads"); by != "c" {
				t.Errorf("%s leads", by)
			}
		})
	})
	t.Run("the campaign ends", func(t *testing.T) {
		for name, f := range map[string]fault.Fault{"": nil, ", and the reply is lost": fault.ReplyLost} {
			for _, pushed := range []bool{true, false} {
				onStage(t, o, func(t *testing.T, s *stage) {
					win(t, s.e)
					broken, b := fault.Wrap(s.store.Handle())
					if !pushed {
						b = polled{b}
					}
					if f != nil {
						broken.Next("swap", f)
					}
					e := join(t, b, with(1))
					ctx, cancel := context.WithCancel(t.Context())
					done := begin(func() error { _, err := e.Campaign(ctx); return err })
					pass(time.Second)
					if bidIn(s.record().Extensions) == "" {
						t.Error("the candidate has not announced itself")
					}
					cancel()
					wait(t, done, "Campaign returns")
					pass(time.Second)
					if got := bidIn(s.record().Extensions); len(got) > 40 || got[0] != '0' {
						t.Errorf("pushed %v%s: the successor is %q", pushed, name, got)
					}
				})
			}
		}
	})
	t.Run("sick", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			sick := with(7)
			var asked atomic.Int32
			sick.Healthy = func(context.Context) error {
				if asked.Add(1) == 1 {
					return nil
				}
				return errors.New("sick")
			}
			s.crowd(sick, true, "a")
			pass(90 * time.Second)
			if n := asked.Load(); n < 5 || n > 12 {
				t.Errorf("in 90 s it was asked for its health %d times", n)
			}
			if got := bidIn(s.record().Extensions); got != "" {
				t.Errorf("a candidate that is not healthy is the successor: %q", got)
			}
		})
	})
	t.Run("sick later", func(t *testing.T) {
		for _, pushed := range []bool{true, false} {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				var sick atomic.Bool
				high := with(5)
				high.Healthy = func(context.Context) error {
					if sick.Load() {
						return errors.New("sick")
					}
					return nil
				}
				c := s.crowd(high, pushed, "high")
				s.crowd(with(3), pushed, "low")
				for _, h := range []struct {
					sick      bool
					successor string
				}{{false, "high"}, {true, "low"}, {false, "high"}, {true, "low"}} {
					sick.Store(h.sick)
					pass(time.Minute)
					if got := bidIn(s.record().Extensions); !strings.HasSuffix(got, h.successor) {
						t.Errorf("pushed %v, sick %v: the successor is %q", pushed, h.sick, got)
					}
				}
				if _, w := c.counts(); w > 4 {
					t.Errorf("pushed %v: it writes %d times", pushed, w)
				}
			})
		}
	})
	t.Run("withdrawn, and the write fails", func(t *testing.T) {
		for name, f := range map[string]fault.Fault{
			"the request is lost": fault.RequestLost, "the reply is lost": fault.ReplyLost,
			"the store fails": fault.Fails(backends.ErrUnavailable), "it hangs": fault.Hang,
		} {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				c := s.crowd(with(5), true, "high")
				c.faults["high"].Next("swap", f) // and the announcement
				pass(time.Minute)
				if got := bidIn(s.record().Extensions); !strings.HasSuffix(got, "high") {
					t.Fatalf("the successor is %q", got)
				}
				c.faults["high"].Next("swap", f)
				c.all["high"].SetPriority(0)
				pass(time.Minute)
				if got := bidIn(s.record().Extensions); !strings.HasPrefix(got, "0 ") {
					t.Errorf("%s: a minute after SetPriority(0) the successor is %q", name, got)
				}
			})
		}
	})
	t.Run("again, with the same ID", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			pass(time.Second)
			change(t, s.store, set(t, "t_bid", "5 n pod-0")) // by a process that is gone
			s.crowd(o, true, "pod-0")
			low := s.crowd(with(4), true, "pod-1")
			pass(time.Minute)
			s.e.Resign(t.Context())
			if by := wait(t, low.by, "another candidate leads"); by != "pod-1" {
				t.Errorf("%s leads", by)
			}
		})
	})
	t.Run("twins", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c, d := s.crowd(with(5), true, "twin"), s.crowd(with(2), true, "twin")
			sick := with(7)
			sick.Healthy = func(context.Context) error { return errors.New("sick") }
			e := s.crowd(sick, true, "twin")
			pass(time.Hour)
			_, w := c.counts()
			_, v := d.counts()
			_, u := e.counts()
			if got := bidIn(s.record().Extensions); w+v+u > 6 || !strings.HasPrefix(got, "5 ") {
				t.Errorf("candidates with one ID write %d, %d and %d times; the successor is %q", w, v, u, got)
			}
		})
	})
	t.Run("pushed late", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			var writes atomic.Int32
			for range 50 {
				h := s.store.Handle()
				f, b := fault.Wrap(late{h, any(h).(backends.Watcher)})
				f.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
					if c.Op == "swap" {
						writes.Add(1)
					}
					time.Sleep(time.Millisecond)
					return send(ctx)
				})
				go join(t, b, with(1)).Campaign(t.Context())
			}
			pass(10 * time.Minute)
			if n := writes.Load(); n < 1 || n > 10 {
				t.Errorf("50 candidates that are shown each state a second late write %d times", n)
			}
		})
	})
	t.Run("restless", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			var e atomic.Pointer[elector.Elector]
			var seen atomic.Int32
			restless := with(1)
			restless.Trace = &elector.Trace{Observed: func(context.Context, elector.LeaderInfo) {
				if e := e.Load(); e != nil && seen.Add(1) < 1000 {
					e.SetPriority(1 + int(seen.Load())%7)
				}
			}}
			c := s.crowd(restless, true, "a")
			e.Store(c.all["a"])
			pass(10 * time.Minute)
			if _, w := c.counts(); w > 62 || w < 30 {
				t.Errorf("in 10 minutes a candidate that changes its priority with each state of the record writes %d times, and the leader renews 60 times", w)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			for _, p := range []int{-1, 1 << 31} {
				if err := s.e.SetPriority(p); !errors.Is(err, elector.ErrInvalid) {
					t.Errorf("%d: %v", p, err)
				}
				if _, err := elector.New(s.store.Handle(), "bubble", &elector.Options{Priority: p}); !errors.Is(err, elector.ErrInvalid) {
					t.Errorf("%d: %v", p, err)
				}
			}
		})
	})
}
