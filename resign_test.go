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
	"github.com/elector-go/elector/operate"
)

// record returns the record in the store.
func (s *stage) record() backends.Record {
	s.t.Helper()
	r, err := backends.Decode("bubble", s.store.Get("bubble"))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// candidate makes another candidate.
func (s *stage) candidate(o elector.Options) *elector.Elector {
	s.t.Helper()
	return join(s.t, s.store.Handle(), o)
}

// asks requests the resignation of a leader from another process.
func (s *stage) asks(ctx context.Context, token elector.Token, to string) <-chan error {
	e := s.candidate(elector.Options{ID: "operator"})
	return begin(func() error {
		return e.Operator().RequestResign(ctx, operate.ResignRequest{Token: uint64(token), To: to})
	})
}

// A request to resign is met at the next renewal, ends no lease, and moves the
// leader once.
func TestRequestResign(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}
	t.Run("drains", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := s.run()
			next := s.rival()
			pass(time.Second)
			asked := s.asks(t.Context(), l.Token(), "")
			pass(time.Second)
			if l.Context().Err() != nil {
				t.Error("a request ends the worker's context before the next renewal")
			}
			pass(10 * time.Second)
			if err := context.Cause(l.Context()); !errors.Is(err, elector.ErrRequested) || !errors.Is(err, elector.ErrResigned) {
				t.Errorf("after the next renewal the worker's context has the cause %v", err)
			}
			pass(30 * time.Second)
			if err := l.Check(); err != nil {
				t.Errorf("a lease whose worker drains: %v", err)
			}
			isNot(t, asked, "RequestResign returns while the worker drains")
			isNot(t, next, "a candidate leads while the worker drains")
			s.end()
			other := wait(t, next, "another candidate leads")
			if err := wait(t, asked, "RequestResign returns"); err != nil {
				t.Error(err)
			}
			pass(10 * time.Minute)
			if err := other.Check(); err != nil {
				t.Errorf("the successor: %v", err)
			}
			isNot(t, s.ran, "Run returns after a request")
			start := time.Now()
			if err := other.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if wait(t, s.leads, "Run campaigns again"); time.Since(start) > time.Second {
				t.Errorf("once another one has led, Run stands back for %v", time.Since(start))
			}
		})
	})
	t.Run("stands back", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			s.end()
			l := s.run()
			if err := wait(t, s.asks(t.Context(), 0, ""), "RequestResign returns"); err != nil {
				t.Error(err)
			}
			start := time.Now()
			_ = l
			wait(t, s.leads, "Run leads again")
			if stood := time.Since(start); stood < 60*time.Second || stood > 70*time.Second {
				t.Errorf("Run stood back for %v, not for 66 s", stood)
			}
		})
	})
	t.Run("the worker resigns", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			ctx, cancel := context.WithCancel(t.Context())
			leads := make(chan *elector.Lease, 9)
			ran := begin(func() error {
				return s.e.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
					leads <- l
					<-ctx.Done()
					return l.Release(ctx)
				})
			})
			wait(t, leads, "Run calls the worker")
			if err := wait(t, s.asks(t.Context(), 0, ""), "RequestResign returns"); err != nil {
				t.Error(err)
			}
			wait(t, leads, "Run leads again")
			isNot(t, ran, "Run returns after a request")
			cancel()
			wait(t, ran, "Run returns at the end of its context")
		})
	})
	t.Run("Campaign", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			asked := s.asks(t.Context(), 0, "")
			<-l.Context().Done()
			if err := context.Cause(l.Context()); !errors.Is(err, elector.ErrRequested) || l.Check() != nil {
				t.Errorf("the context has the cause %v, and Check returns %v", err, l.Check())
			}
			pass(30 * time.Second)
			if err := l.Check(); err != nil {
				t.Errorf("half a minute later: %v", err)
			}
			next := s.rival()
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := wait(t, asked, "RequestResign returns"); err != nil {
				t.Error(err)
			}
			wait(t, next, "another candidate leads")
		})
	})
	t.Run("Campaign, not resigned", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			s.asks(t.Context(), 0, "")
			<-l.Context().Done()
			start := time.Now()
			pass(59 * time.Second)
			if err := l.Check(); err != nil {
				t.Errorf("before ReleaseTimeout: %v", err)
			}
			pass(2 * time.Second)
			if err := l.Check(); !errors.Is(err, elector.ErrLost) || s.vacant() {
				t.Errorf("%v later: %v", time.Since(start), err)
			}
		})
	})
	t.Run("Campaign, again", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			s.asks(t.Context(), 0, "")
			<-l.Context().Done()
			_, first := s.e.Campaign(t.Context())
			_, second := s.e.TryCampaign(t.Context())
			third := s.e.Run(t.Context(), s.work)
			for _, err := range []error{first, second, third} {
				if !errors.Is(err, elector.ErrBusy) || l.Check() != nil {
					t.Fatalf("a campaign beside a lease that drains: %v; the lease: %v", err, l.Check())
				}
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			again := campaign(t, s.e)
			pass(time.Second)
			isNot(t, again, "a candidate that was requested to resign leads at once")
			wait(t, again, "it leads again")
		})
	})
	t.Run("yesterday", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			old := win(t, s.e)
			if err := old.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := wait(t, s.asks(t.Context(), 0, ""), "RequestResign returns"); !errors.Is(err, elector.ErrNotLeader) {
				t.Errorf("a request to a vacant election: %v", err)
			}
			l := win(t, s.e)
			if err := wait(t, s.asks(t.Context(), old.Token(), ""), "RequestResign returns"); !errors.Is(err, elector.ErrNotLeader) || !strings.Contains(err.Error(), l.Token().String()) {
				t.Errorf("a request for a token of yesterday: %v", err)
			}
			if x := s.record().Extensions; strings.Contains(string(x), "t_request") {
				t.Errorf("it was written: %s", x)
			}
			change(t, s.store, set(t, "t_request", old.Token().String()+" 1 x y "))
			pass(time.Hour)
			if l.Context().Err() != nil || l.Check() != nil {
				t.Errorf("a request for a token of yesterday is obeyed: %v", context.Cause(l.Context()))
			}
			l.Release(t.Context())
		})
	})
	t.Run("twice", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := s.run()
			first := s.asks(t.Context(), 0, "next")
			pass(time.Second)
			written := s.record()
			same, none, other := s.asks(t.Context(), l.Token(), "next"), s.asks(t.Context(), 0, ""), s.asks(t.Context(), 0, "other")
			if err := wait(t, other, "RequestResign returns"); !errors.Is(err, elector.ErrRequested) || !strings.Contains(err.Error(), "operator") {
				t.Errorf("a request in favour of another candidate while one is pending: %v", err)
			}
			if r := s.record(); r != written {
				t.Errorf("further requests change the record: %v", r)
			}
			s.end()
			for _, c := range []<-chan error{first, same, none} {
				if err := wait(t, c, "RequestResign returns"); err != nil {
					t.Error(err)
				}
			}
		})
	})
	t.Run("in favour of the leader", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			if err := wait(t, s.asks(t.Context(), 0, s.e.ID()), "RequestResign returns"); !errors.Is(err, elector.ErrInvalid) {
				t.Error(err)
			}
			for _, id := range []string{"\x00", "\xff", strings.Repeat("x", 257)} {
				if err := wait(t, s.asks(t.Context(), 0, id), "RequestResign returns"); !errors.Is(err, elector.ErrInvalid) {
					t.Errorf("%q: %v", id, err)
				}
			}
			pass(time.Minute)
			if l.Context().Err() != nil {
				t.Error("a request that was refused is obeyed")
			}
		})
	})
}

// What a requester is told when the leader does not resign.
func TestRequestUnanswered(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second, ReleaseTimeout: time.Hour}
	patience := func(t *testing.T, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	t.Run("the worker drains", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			s.run()
			err := wait(t, s.asks(patience(t, time.Minute), 0, ""), "RequestResign returns")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "its worker has not returned") {
				t.Error(err)
			}
		})
	})
	t.Run("the leader hangs", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			s.fault.Always(fault.Hang)
			err := wait(t, s.asks(patience(t, 30*time.Second), 0, ""), "RequestResign returns")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not renewed") {
				t.Error(err)
			}
			s.plain()
		})
	})
	t.Run("the leader is gone, and so are all candidates", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			s.fault.Always(fault.Hang)
			start := time.Now()
			err := wait(t, s.asks(t.Context(), 0, ""), "RequestResign returns")
			if !errors.Is(err, elector.ErrLost) || time.Since(start) > 80*time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			s.plain()
		})
	})
	t.Run("the leader is of a version that does not know requests", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			win(t, s.e)
			s.fault.Always(fault.Hang)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() { // keeps what belongs to the term, and does not react
				for ctx.Err() == nil {
					change(t, s.store, func(r *backends.Record) { r.Attempt.Sequence++ })
					time.Sleep(10 * time.Second)
				}
			}()
			err := wait(t, s.asks(patience(t, time.Minute), 0, ""), "RequestResign returns")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not know requests") {
				t.Error(err)
			}
			stop()
			pass(10 * time.Second)
			s.plain()
		})
	})
	// C counts from the last renewal, however many requests come.
	t.Run("the leader is gone, and a request comes every second", func(t *testing.T) {
		onStage(t, o, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			next := s.rival()
			asked := s.asks(t.Context(), 0, "")
			pass(time.Second)
			s.fault.Always(fault.Hang)
			start := time.Now()
			for n := 0; time.Since(start) < 70*time.Second && len(next) == 0; n++ {
				change(t, s.store, set(t, "t_request", fmt.Sprintf("%d %d  operator awaiting", l.Token(), n)))
				pass(time.Second)
			}
			select {
			case <-next:
			default:
				t.Errorf("requests keep a dead leader for %v", time.Since(start))
			}
			if err := wait(t, asked, "RequestResign returns"); err != nil && !errors.Is(err, elector.ErrLost) {
				t.Error(err)
			}
			s.plain()
		})
	})
	for name, f := range map[string]fault.Fault{
		"the store does not answer": fault.Fails(backends.ErrUnavailable),
		"the store takes no writes": func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "swap" {
				return backends.Record{}, backends.ErrUnavailable
			}
			return send(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, o, func(t *testing.T, s *stage) {
				win(t, s.e)
				broken, b := fault.Wrap(s.store.Handle())
				broken.Always(f)
				e := join(t, b, elector.Options{})
				err := wait(t, begin(func() error { return e.Operator().RequestResign(patience(t, time.Minute), operate.ResignRequest{}) }), "RequestResign returns")
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, elector.ErrUnavailable) {
					t.Error(err)
				}
			})
		})
	}
}

// forgetful drops requests to resign, and pauses.
type forgetful struct {
	backends.Backend
	swaps *atomic.Int32
}

func (b forgetful) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	b.swaps.Add(1)
	time.Sleep(time.Millisecond) // or a loop takes no time
	next.Extensions = next.Extensions.Without("t_request").Without("c_pause")
	return b.Backend.Swap(ctx, name, prev, next)
}

// A request that the backend drops is not written without end.
func TestRequestDropped(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}, func(t *testing.T, s *stage) {
		win(t, s.e)
		var swaps atomic.Int32
		e := join(t, forgetful{s.store.Handle(), &swaps}, elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second})
		asked := begin(func() error { return e.Operator().RequestResign(t.Context(), operate.ResignRequest{}) })
		pass(10 * time.Second)
		if n := swaps.Load(); n > 10 {
			t.Fatalf("%d writes in 10 s", n)
		}
		if err := wait(t, asked, "RequestResign returns"); !errors.Is(err, elector.ErrMisconfigured) || !strings.Contains(err.Error(), "drops") {
			t.Error(err)
		}
	})
}

// What is printed differs between versions of Go: the leader follows a request from any.
func TestRequestOfAnotherUnicode(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		change(t, s.store, set(t, "t_request", l.Token().String()+" 1 host-\ue000 awaiting"))
		lead, err := s.candidate(elector.Options{}).Leader(t.Context())
		if err != nil || lead.RequestedBy != "host-?" {
			t.Errorf("%+v, %v", lead, err)
		}
		pass(11 * time.Second)
		if err := context.Cause(l.Context()); !errors.Is(err, elector.ErrRequested) {
			t.Error(err)
		}
		l.Release(t.Context())
	})
}

// A request finds room beside the longest IDs, and the history gives way to it.
func TestRequestRoom(t *testing.T) {
	for name, letter := range map[string]string{"letters": "é", "escapes": " "} {
		t.Run(name, func(t *testing.T) {
			id := func(c string) string { return strings.Repeat(letter, 256/len(letter)-1) + c }
			o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second, ReleaseTimeout: time.Hour}
			onStage(t, o, func(t *testing.T, s *stage) {
				for i := range 8 {
					win(t, s.candidate(elector.Options{ID: fmt.Sprint(i, id(""))[:63]})).Release(t.Context())
				}
				l := s.run()
				change(t, s.store, set(t, "k_other", strings.Repeat("x", 560)))
				o.ID, o.Priority = id("a"), 1
				s.crowd(o, true, o.ID)
				pass(time.Minute)
				if bidIn(s.record().Extensions) == "" {
					t.Error("no candidate has announced itself")
				}
				e := s.candidate(elector.Options{ID: id("b")})
				asked := begin(func() error { return e.Operator().RequestResign(t.Context(), operate.ResignRequest{To: id("c")}) })
				pass(time.Minute)
				lead, err := e.Leader(t.Context())
				if err != nil || !lead.Draining || lead.Successor != id("c") || !errors.Is(context.Cause(l.Context()), elector.ErrRequested) {
					t.Errorf("%+v, %v", lead, err)
				}
				s.end()
				if err := wait(t, asked, "RequestResign returns"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What is not a request, or not a successor, counts as none.
func TestMalformed(t *testing.T) {
	o := elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}
	onStage(t, o, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		c := s.crowd(o, false, "c0") // which does not volunteer
		for _, by := range []string{"a%00", "%ff", "%1b%5b31m", "a%0aroot", strings.Repeat("x", 65)} {
			change(t, s.store, set(t, "t_request", l.Token().String()+" 1 "+by+" awaiting"))
			pass(time.Minute)
			if lead, err := c.all["c0"].Leader(t.Context()); err != nil || lead.RequestedBy != "" || l.Context().Err() != nil {
				t.Errorf("a request of %s: %+v, %v", by, lead, err)
			}
		}
		for _, successor := range []string{"-1 1 c0", "2147483649 1 c0", "x 1 c0", "3 1 %00", "3 1", "3 1 c0%"} {
			change(t, s.store, set(t, "t_bid", successor))
			pass(time.Minute)
			if lead, err := c.all["c0"].Leader(t.Context()); err != nil || lead.Successor != "" {
				t.Errorf("t_bid %q: %+v, %v", successor, lead, err)
			}
		}
		if _, w := c.counts(); w != 0 {
			t.Errorf("a candidate without a priority writes %d times", w)
		}
		l.Release(t.Context())
	})
}

// However many requests come, and however slow the store is, the leader's renewals
// succeed: no request overwrites another.
func TestRequestStorm(t *testing.T) {
	slow := func(by time.Duration) fault.Fault {
		return func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			time.Sleep(by)
			r, err := send(ctx)
			time.Sleep(by)
			return r, err
		}
	}
	t.Run("renewed", func(t *testing.T) {
		onStage(t, elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second, ReleaseTimeout: time.Hour}, func(t *testing.T, s *stage) {
			s.fault.Always(slow(50 * time.Millisecond))
			l := s.run()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for i := range 3 {
				f, b := fault.Wrap(s.store.Handle())
				f.Always(slow(20 * time.Millisecond))
				e := join(t, b, elector.Options{})
				go func() {
					for ctx.Err() == nil {
						e.Operator().RequestResign(ctx, operate.ResignRequest{Token: uint64(l.Token()), To: fmt.Sprintf("candidate %d", i)})
					}
				}()
			}
			swaps := s.fault.Count("swap")
			pass(30 * time.Second)
			if err := l.Check(); err != nil || l.Remaining() < 40*time.Second {
				t.Errorf("after half a minute of requests: %v, the lease is valid for %v", err, l.Remaining())
			}
			if n := s.fault.Count("swap") - swaps; n > 5 {
				t.Errorf("in half a minute of requests the leader has written %d times", n)
			}
		})
	})
	// Those of the leader's own Elector.
	t.Run("that hang", func(t *testing.T) {
		onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			release := make(chan struct{})
			s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				if c.Op == "swap" && c.Next.Attempt == c.Prev.Attempt {
					<-release
				}
				return send(ctx)
			})
			for range 2 * mostUnanswered {
				go s.e.Operator().RequestResign(t.Context(), operate.ResignRequest{})
			}
			pass(time.Hour)
			if err := l.Check(); err != nil {
				t.Error(err)
			}
			l.Release(t.Context())
			close(release)
		})
	})
}
