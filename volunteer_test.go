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

// bids returns how often the candidates have written.
func (c *crowd) bids() int {
	_, writes := c.counts()
	return writes
}

// One of those who wait volunteers, and leads at once after a release.
func TestVolunteer(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}
	for _, n := range []int{1, 10, 50} {
		t.Run(fmt.Sprintf("%d waiting", n), func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				c := s.crowd(o, true, names(n)...)
				pass(time.Minute)
				if w := c.bids(); w < 1 || w > 3 {
					t.Errorf("in a term %d candidates write %d bids", n, w)
				}
				bid := bidIn(s.record().Extensions)
				loads, swaps := c.counts()
				start := time.Now()
				if err := s.e.Resign(t.Context()); err != nil {
					t.Fatal(err)
				}
				wait(t, c.won, "the successor leads")
				if by := <-c.by; time.Since(start) > 0 || !strings.HasSuffix(bid, " "+by) {
					t.Errorf("%s leads after %v, and the bid was %q", by, time.Since(start), bid)
				}
				l, w := c.counts()
				if l, w = l-loads, w-swaps; l != 0 || w != 1 {
					t.Errorf("the handover costs the candidates %d reads and %d writes, not 0 and 1", l, w)
				}
			})
		})
	}
	t.Run("not where others would wait for it", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, false, names(5)...)
			pass(10 * time.Minute)
			if w := c.bids(); w != 0 {
				t.Errorf("on a store that pushes no vacancy %d bids were written", w)
			}
		})
	})
	t.Run("a priority beats it", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, names(9)...)
			pass(time.Second)
			high := o
			high.Priority = 1
			first := s.crowd(high, true, "high")
			pass(20 * time.Second)
			start := time.Now()
			s.e.Resign(t.Context())
			if wait(t, first.by, "the candidate with a priority leads"); time.Since(start) > 0 {
				t.Errorf("it leads after %v", time.Since(start))
			}
			isNot(t, c.by, "another candidate leads")
		})
	})
	t.Run("the campaign ends", func(t *testing.T) {
		for name, f := range map[string]fault.Fault{"": nil, ", and the reply is lost": fault.ReplyLost} {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				broken, b := fault.Wrap(s.store.Handle())
				if f != nil {
					broken.Next("swap", f)
				}
				e := join(t, b, o)
				ctx, cancel := context.WithCancel(t.Context())
				done := begin(func() error { _, err := e.Campaign(ctx); return err })
				pass(5 * time.Second)
				if got := bidIn(s.record().Extensions); !strings.HasSuffix(got, e.ID()) {
					t.Errorf("the bid is %q%s", got, name)
				}
				cancel()
				wait(t, done, "Campaign returns")
				pass(time.Second)
				if got := bidIn(s.record().Extensions); strings.HasSuffix(got, e.ID()) {
					t.Errorf("the bid of a candidate that campaigns no more is %q%s", got, name)
				}
			})
		}
	})
	t.Run("its bid is slow, and it wins meanwhile", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			slow, b := fault.Wrap(s.store.Handle())
			frail := o
			frail.ID, frail.Priority = "slow", 3
			release, leads := make(chan struct{}), make(chan *elector.Lease, 1)
			ctx, stop := context.WithCancel(t.Context())
			slow.Next("load", fault.Slow(0), fault.Hold(release)) // that of the campaign, and that of the bid
			e := join(t, b, frail)
			ran := begin(func() error {
				return e.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
					leads <- l
					<-ctx.Done()
					return nil
				})
			})
			for slow.Pending() > 0 {
				pass(time.Millisecond)
			}
			s.e.Resign(t.Context())
			wait(t, leads, "it leads")
			close(release)
			pass(time.Second)
			if got := bidIn(s.record().Extensions); got != "" {
				t.Errorf("the leader bids %q for its own succession", got)
			}
			stop()
			wait(t, ran, "Run returns")
		})
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
			if got := bidIn(s.record().Extensions); !strings.HasSuffix(got, " frail") {
				t.Fatalf("the bid is %q", got)
			}
			if n := asked.Load(); n < 20 || n > 32 {
				t.Errorf("in 5 minutes it was asked for its health %d times", n)
			}
			sick.Store(true)
			pass(time.Minute)
			if got := bidIn(s.record().Extensions); strings.HasSuffix(got, " frail") {
				t.Errorf("a candidate that is not healthy has the bid %q", got)
			}
		})
	})
	// A slow Healthy delays neither the sight of a vacancy nor the handover.
	t.Run("slow to tell its health", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			slow := o
			slow.RequestTimeout = 5 * time.Second
			slow.Healthy = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
			c := s.crowd(slow, true, "c0")
			for _, after := range []time.Duration{time.Minute, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
				pass(after)
			}
			start := time.Now()
			s.e.Resign(t.Context())
			if wait(t, c.by, "the successor leads"); time.Since(start) > 0 {
				t.Errorf("it leads after %v", time.Since(start))
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
			wait(t, s.asks(t.Context(), 0, ""), "RequestResign returns")
			change(t, s.store, set(t, "t_bid", ""))
			pass(30 * time.Second)
			if r := s.record(); !r.Vacant() || bidIn(r.Extensions) != "" {
				t.Errorf("%q leads or has the bid %q, and another candidate had a chance to", r.Holder, bidIn(r.Extensions))
			}
			c.faults["c0"].Always(nil)
			wait(t, c.by, "the other candidate leads")
			pass(5 * time.Second)
			if got := bidIn(s.record().Extensions); !strings.HasSuffix(got, s.e.ID()) {
				t.Errorf("when another one leads, the bid is %q", got)
			}
		})
	})
	t.Run("twins", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c, d := s.crowd(o, true, "twin"), s.crowd(o, true, "twin")
			pass(time.Hour)
			if n := c.bids() + d.bids(); n > 3 {
				t.Errorf("candidates with one ID write %d bids", n)
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
				c.faults["c0"].Next("swap", f)
				pass(5 * time.Second)
				if got := bidIn(s.record().Extensions); got != "" {
					t.Errorf("%s: the bid is %q", name, got)
				}
				pass(time.Minute)
				if got := bidIn(s.record().Extensions); !strings.HasSuffix(got, " c0") {
					t.Errorf("%s: a minute later the bid is %q", name, got)
				}
			})
		}
	})
	t.Run("two take turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			var both []*elector.Elector
			for range 2 {
				both = append(both, join(t, s.Handle(), o))
			}
			leads := win(t, both[0])
			for term := range 10 {
				next := campaign(t, both[(term+1)%2])
				pass(10 * time.Minute)
				start := time.Now()
				if err := leads.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				leads = wait(t, next, "the other one leads")
				if took := time.Since(start); took > 0 {
					t.Errorf("it leads after %v", took)
				}
			}
			leads.Release(t.Context())
		})
	})
	t.Run("while the write hangs", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "c0")
			c.faults["c0"].Next("swap", fault.Hang)
			pass(500 * time.Millisecond)
			start := time.Now()
			s.e.Resign(t.Context())
			if wait(t, c.by, "the candidate leads"); time.Since(start) > 10*time.Millisecond {
				t.Errorf("it leads after %v", time.Since(start))
			}
		})
	})
}
