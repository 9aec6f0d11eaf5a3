package elector_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// polled is a backend without Watch.
type polled struct{ backends.Backend }

// A crowd is candidates that wait, and the requests of each.
type crowd struct {
	ids    []string
	faults map[string]*fault.Backend
	all    map[string]*elector.Elector
	won    chan *elector.Lease
	by     chan string
}

// crowd makes candidates campaign, and waits until they have seen the leader.
func (s *stage) crowd(o elector.Options, pushed bool, ids ...string) *crowd {
	c := &crowd{ids: ids, faults: map[string]*fault.Backend{}, all: map[string]*elector.Elector{}, won: make(chan *elector.Lease, 99), by: make(chan string, 99)}
	for _, id := range ids {
		o.ID = id
		f, b := fault.Wrap(s.store.Handle())
		if !pushed {
			b = polled{b}
		}
		e := join(s.t, b, o)
		c.faults[id], c.all[id] = f, e
		go func() {
			if l, err := e.Campaign(s.t.Context()); err == nil {
				c.by <- id
				c.won <- l
			}
		}()
	}
	pass(20 * time.Millisecond)
	return c
}

// counts returns the requests that the candidates have made.
func (c *crowd) counts() (loads, swaps int) {
	for _, f := range c.faults {
		loads, swaps = loads+f.Count("load"), swaps+f.Count("swap")
	}
	return loads, swaps
}

func names(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("c%d", i))
	}
	return ids
}

// After a release the candidate that the leader named leads, at once; the others
// give it a head start, and no more than that.
func TestSuccessor(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}
	t.Run("named by the leader", func(t *testing.T) {
		for _, id := range []string{"c7", "c0", "c19", "c12", "c3"} { // if all tried, any of them might win
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				c := s.crowd(o, true, names(20)...)
				loads, swaps := c.counts()
				start := time.Now()
				if err := s.e.ResignTo(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if by := wait(t, c.by, "the successor leads"); by != id || time.Since(start) > 0 {
					t.Errorf("%s leads after %v, not %s", by, time.Since(start), id)
				}
				l, w := c.counts()
				if l -= loads; l != 0 || w-swaps != 1 {
					t.Errorf("the handover costs %d reads and %d writes, not 0 and 1", l, w-swaps)
				}
				pass(time.Second)
				if x := s.record().Extensions; strings.HasSuffix(bidIn(x), " "+id) {
					t.Errorf("the successor is still named: %s", x)
				}
			})
		}
	})
	t.Run("named by a request", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			s.end()
			s.run()
			c := s.crowd(o, true, names(20)...)
			if err := wait(t, s.asks(t.Context(), 0, "c7"), "RequestResign returns"); err != nil {
				t.Error(err)
			}
			if by := wait(t, c.by, "the successor leads"); by != "c7" {
				t.Errorf("%s leads", by)
			}
			isNot(t, s.leads, "Run leads again")
		})
	})
	t.Run("named twice", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			s.run()
			c := s.crowd(o, true, names(20)...)
			asked := s.asks(t.Context(), 0, "c7")
			pass(11 * time.Second)
			resigned := begin(func() error { return s.e.ResignTo(t.Context(), "c8") })
			pass(time.Second)
			s.end()
			if by := wait(t, c.by, "the successor leads"); by != "c8" {
				t.Errorf("%s leads, and the leader named c8", by)
			}
			if err := errors.Join(wait(t, asked, "RequestResign returns"), wait(t, resigned, "ResignTo returns")); err != nil {
				t.Error(err)
			}
		})
	})
	for _, pushed := range []bool{true, false} {
		t.Run(fmt.Sprintf("dead, pushed %v", pushed), func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				c := s.crowd(o, pushed, names(5)...)
				least, most := 50*time.Millisecond, 60*time.Millisecond
				if !pushed {
					pass(time.Minute)
					least, most = 10*time.Second, 15*time.Second
				}
				start := time.Now()
				if err := s.e.ResignTo(t.Context(), "no one"); err != nil {
					t.Fatal(err)
				}
				wait(t, c.by, "another candidate leads")
				if took := time.Since(start); took < least || took > most {
					t.Errorf("it leads after %v, not after a head start of %v", took, least)
				}
			})
		})
	}
	t.Run("polled", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, false, names(5)...)
			pass(time.Minute)
			if err := s.e.ResignTo(t.Context(), "c4"); err != nil {
				t.Fatal(err)
			}
			if by := wait(t, c.by, "the successor leads"); by != "c4" {
				t.Errorf("%s leads", by)
			}
		})
	})
	t.Run("dead, for one try", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			if err := s.e.ResignTo(t.Context(), "no one"); err != nil {
				t.Fatal(err)
			}
			pass(time.Hour)
			start := time.Now()
			if _, err := s.candidate(o).TryCampaign(t.Context()); err != nil || time.Since(start) > 60*time.Millisecond {
				t.Errorf("TryCampaign after %v: %v", time.Since(start), err)
			}
		})
	})
	t.Run("dead, for those who come later", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			if err := s.e.ResignTo(t.Context(), "no one"); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if win(t, join(t, polled{s.store.Handle()}, o)); time.Since(start) > 5*time.Second {
				t.Errorf("a process that never saw the leader leads after %v", time.Since(start))
			}
		})
	})
	t.Run("dead, with a long TTL", func(t *testing.T) {
		o := elector.Options{TTL: time.Hour, RenewEvery: 10 * time.Minute}
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			e := join(t, polled{s.store.Handle()}, o)
			e.Leader(t.Context())
			if err := s.e.ResignTo(t.Context(), "no one"); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if win(t, e); time.Since(start) > 31*time.Second {
				t.Errorf("another candidate leads after %v", time.Since(start))
			}
		})
	})
	t.Run("that is sick", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			o := o
			o.Healthy = func(context.Context) error { return errors.New("sick") }
			s.crowd(o, true, "sick")
			o.Healthy = nil
			c := s.crowd(o, true, "well")
			if err := s.e.ResignTo(t.Context(), "sick"); err != nil {
				t.Fatal(err)
			}
			wait(t, c.by, "the other candidate leads")
		})
	})
	t.Run("after a crash", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			c := s.crowd(o, true, "c0")
			change(t, s.store, set(t, "t_bid", "2147483648 n c0"))
			s.fault.Always(fault.Hang)
			pass(time.Second)
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
			win(t, s.e)
			c := s.crowd(o, true, "c0")
			c.faults["c0"].Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
				if call.Op == "swap" && call.Prev.Exists() {
					return backends.Record{}, fault.ErrInjected
				}
				return send(ctx)
			})
			if err := s.e.ResignTo(t.Context(), "c0"); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			s.store.Delete("bubble")
			start := time.Now()
			pass(30 * time.Second)
			loads, _ := c.counts()
			wait(t, c.by, "the candidate leads")
			if took := time.Since(start); took < 60*time.Second {
				t.Errorf("the successor of a vacancy that vanished leads after %v", took)
			}
			if l, _ := c.counts(); l != loads+1 {
				t.Errorf("the successor of a vacancy that vanished takes over with %d reads, not 1", l-loads)
			}
		})
	})
	t.Run("named in vain", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			var none context.Context
			if err := s.e.ResignTo(none, "c0"); !errors.Is(err, elector.ErrInvalid) || l.Check() != nil {
				t.Errorf("ResignTo without a context: %v; the lease: %v", err, l.Check())
			}
			s.e.Resign(t.Context())
			if got := bidIn(s.record().Extensions); got != "" {
				t.Errorf("Resign after it names %q", got)
			}
		})
	})
	t.Run("named, and the caller does not wait", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			proceed := make(chan struct{})
			s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				<-proceed
				return send(ctx)
			})
			pass(o.RenewEvery + time.Second) // a renewal is under way, so no release begins
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.e.ResignTo(ctx, "c0"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			close(proceed)
			pass(time.Second)
			if got := bidIn(s.record().Extensions); got == "" || !s.vacant() {
				t.Errorf("the release that goes on names %q", got)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			if err := s.e.ResignTo(t.Context(), "c0"); !errors.Is(err, elector.ErrNotLeader) {
				t.Error(err)
			}
			l := win(t, s.e)
			for _, id := range []string{"", s.e.ID(), "\x00", "\xff"} {
				if err := s.e.ResignTo(t.Context(), id); !errors.Is(err, elector.ErrInvalid) || l.Check() != nil {
					t.Errorf("ResignTo %q: %v", id, err)
				}
			}
		})
	})
}

// bidIn returns the value of the extension t_bid.
func bidIn(x backends.Extensions) string {
	value, _ := x.Get("t_bid")
	return value
}
