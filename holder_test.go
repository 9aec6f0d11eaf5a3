package elector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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

// change edits a record by hand, as an operator does.
func change(t *testing.T, s *memory.Store, edit func(r *backends.Record)) {
	t.Helper()
	r, err := backends.Decode("bubble", s.Get("bubble"))
	if err != nil {
		t.Fatal(err)
	}
	edit(&r)
	s.Put("bubble", backends.Encode("bubble", r))
}

// set sets an extension.
func set(t *testing.T, name, value string) func(r *backends.Record) {
	return func(r *backends.Record) {
		x, err := r.Extensions.With(name, value)
		if err != nil {
			t.Fatal(err)
		}
		r.Extensions = x
	}
}

// rec/edited: what a holder finds in its record and did not write is a loss at
// the next renewal, never adopted; a fresh candidate then leads alone.
func TestEdited(t *testing.T) {
	for name, edit := range map[string]func(r *backends.Record){
		"holder emptied": func(r *backends.Record) { r.Holder = "" },
		"another holder": func(r *backends.Record) { r.Holder = "usurper" },
		"TTL lowered":    func(r *backends.Record) { r.TTL = 2 * time.Second; r.RenewEvery = time.Second },
		"TTL raised":     func(r *backends.Record) { r.TTL = 20 * time.Minute },
		"interval":       func(r *backends.Record) { r.RenewEvery++ },
		"attempt":        func(r *backends.Record) { r.Attempt.Sequence++ },
		"value":          func(r *backends.Record) { r.Value = "edited" },
		"token":          func(r *backends.Record) { r.Token++ },
		"a critical extension": func(r *backends.Record) {
			r.Extensions, _ = r.Extensions.With("c_unknown", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, elector.Options{TTL: 10 * time.Minute, RenewEvery: time.Minute}, func(t *testing.T, s *stage) {
				l := win(t, s.e)
				pass(30 * time.Second)
				change(t, s.store, edit)
				pass(time.Minute)
				if err := l.Check(); !errors.Is(err, elector.ErrLost) {
					t.Errorf("one renewal after the record was edited: %v, and the lease is valid for %v", err, l.Remaining())
				}
				writes := s.fault.Count("swap")
				pass(20 * time.Minute)
				if s.fault.Count("swap") != writes {
					t.Error("a record that was edited goes on being renewed")
				}
				change(t, s.store, func(r *backends.Record) { r.Extensions = "" })
				wait(t, s.rival(), "a fresh candidate leads")
			})
		})
	}
}

// rec/request: a request costs one conflict, one read and one repeat. It extends
// no lease, does not keep a dead leader, and survives renewals.
func TestRequest(t *testing.T) {
	t.Run("of a leader", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 10 * time.Minute, RenewEvery: time.Minute}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			pass(30 * time.Second)
			before := l.Remaining()
			change(t, s.store, set(t, "t_request", "1"))
			change(t, s.store, set(t, "k_other", "2"))
			swaps, loads := s.fault.Count("swap"), s.fault.Count("load")
			if l.Remaining() != before {
				t.Error("a request has extended the lease")
			}
			pass(30 * time.Second)
			if swaps, loads := s.fault.Count("swap")-swaps, s.fault.Count("load")-loads; swaps != 2 || loads != 1 {
				t.Errorf("a request costs %d writes and %d reads, not 2 and 1", swaps, loads)
			}
			if got, want := l.Remaining(), 9*time.Minute; got != want {
				t.Errorf("after a renewal that met a request the lease is valid for %v, not %v", got, want)
			}
			pass(10 * time.Minute)
			r, err := backends.Decode("bubble", s.store.Get("bubble"))
			if request, _ := r.Extensions.Get("t_request"); err != nil || request != "1" {
				t.Errorf("renewals have dropped what belongs to the term: %q, %v", r.Extensions, err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err := backends.Decode("bubble", s.store.Get("bubble")); err != nil || r.Extensions.Without("k_history") != `{"k_other":"2"}` {
				t.Errorf("a release leaves the extensions %q, not what is kept: %v", r.Extensions, err)
			}
			change(t, s.store, set(t, "t_request", "3"))
			win(t, s.e)
			if r, err := backends.Decode("bubble", s.store.Get("bubble")); err != nil || r.Extensions.Without("k_history") != `{"k_other":"2"}` {
				t.Errorf("an acquisition leaves the extensions %q, not what is kept: %v", r.Extensions, err)
			}
		})
	})
	t.Run("while it renews", func(t *testing.T) {
		onStage(t, elector.Options{TTL: 10 * time.Minute, RenewEvery: time.Minute}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			pass(30 * time.Second)
			s.fault.Next("swap", func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				send(ctx)
				change(t, s.store, set(t, "t_request", "1"))
				return backends.Record{}, fault.ErrInjected
			})
			pass(30 * time.Second)
			if got, want := l.Remaining(), 9*time.Minute; got != want {
				t.Errorf("after a renewal whose answer was lost, and a request, the lease is valid for %v, not %v", got, want)
			}
		})
	})
	t.Run("of a dead leader", func(t *testing.T) {
		onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
			l := win(t, s.e)
			next := s.rival()
			s.fault.Always(fault.Hang)
			start := time.Now()
			for l.Check() == nil || time.Since(start) < 80*time.Second {
				change(t, s.store, set(t, "t_request", time.Now().String()))
				pass(time.Second)
			}
			select {
			case <-next:
			default:
				t.Errorf("requests keep a dead leader for %v", time.Since(start))
			}
		})
	})
}

// rec/critical: a record with a critical extension that is not known is held,
// with or without a holder, and never lapses.
func TestCritical(t *testing.T) {
	for name, holder := range map[string]string{"held": "process-7", "vacant": ""} {
		t.Run(name, func(t *testing.T) {
			onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
				change(t, s.store, func(r *backends.Record) { r.Holder = holder; set(t, "c_process", "7")(r) })
				before := s.store.Get("bubble")
				leads := campaign(t, s.e)
				pass(30 * time.Minute)
				isNot(t, leads, "a candidate claims a record with an unknown critical extension")
				l, err := s.e.Leader(t.Context())
				if err != nil || l.Lapsed || l.Unchanged < 29*time.Minute {
					t.Errorf("Leader: %+v, %v", l, err)
				}
				other := join(t, s.store.Handle(), elector.Options{})
				_, err = other.TryCampaign(t.Context())
				var h *elector.HeldError
				if !errors.As(err, &h) || !strings.Contains(err.Error(), "c_process") {
					t.Errorf("TryCampaign: %v", err)
				}
				if !bytes.Equal(before, s.store.Get("bubble")) {
					t.Error("the record was changed")
				}
				change(t, s.store, func(r *backends.Record) { r.Extensions = "" })
				wait(t, leads, "the candidate leads when the extension is gone")
			})
		})
	}
}

// A Trace callback that blocks does not block a Watch: see backends.Watcher.
func TestBlockedTraceBlocksNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		var in atomic.Int32
		release := make(chan struct{})
		defer close(release)
		e := join(t, watchful{s.Handle(), &in}, elector.Options{Trace: &elector.Trace{Observed: func(_ context.Context, l elector.LeaderInfo) {
			if l.Leader.ID == "second" {
				<-release
			}
		}}})
		l := win(t, join(t, s.Handle(), elector.Options{ID: "first"}))
		go func() {
			for range e.Observe(t.Context()) {
			}
		}()
		pass(time.Second)
		l.Release(t.Context())
		win(t, join(t, s.Handle(), elector.Options{ID: "second"}))
		pass(time.Minute)
		if in.Load() != 0 {
			t.Error("changed blocks")
		}
	})
}

// watchful counts the calls of changed that have not returned.
type watchful struct {
	backends.Watcher
	in *atomic.Int32
}

func (w watchful) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return w.Watcher.Watch(ctx, name, func(r backends.Record) {
		w.in.Add(1)
		changed(r)
		w.in.Add(-1)
	})
}

// A Watch that is switched off is not called, and changes are found by reading.
func TestNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		l := win(t, join(t, s.Handle(), elector.Options{ID: "first"}))
		next := campaign(t, join(t, unwatched{s.Handle(), t}, elector.Options{ID: "second"}))
		pass(time.Minute)
		l.Release(t.Context())
		wait(t, next, "the second candidate leads")
	})
}

type unwatched struct {
	*memory.Backend
	t *testing.T
}

func (u unwatched) Describe() backends.Description {
	return backends.Description{Store: u.Backend.Describe().Store, NoWatch: true}
}

func (u unwatched) Watch(context.Context, string, func(backends.Record)) error {
	u.t.Error("Watch is called")
	return backends.ErrMisconfigured
}

// The named stores of the memory backend work in one bubble after another.
func TestBubblesShareAStore(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			o := &elector.Options{Logger: slog.New(slog.DiscardHandler)}
			a, err := elector.Open(t.Context(), "memory://shared", "bubbles", o)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, err := elector.Open(t.Context(), "memory://shared", "bubbles", o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			l := win(t, a)
			next := campaign(t, b)
			pass(time.Minute)
			isNot(t, next, "two leaders")
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			wait(t, next, "the second leads")
		})
	}
}

// What cannot be used is refused at once, and not when this process leads.
func TestNilArguments(t *testing.T) {
	e, err := elector.New(memory.New(), "nil", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var none context.Context
	for what, call := range map[string]func() error{
		"New(nil)":             func() error { _, err := elector.New(nil, "x", nil); return err },
		"Open with no context": func() error { _, err := elector.Open(none, "memory://", "x", nil); return err },
		"Run(nil)":             func() error { return e.Run(t.Context(), nil) },
		"Campaign":             func() error { _, err := e.Campaign(none); return err },
		"TryCampaign":          func() error { _, err := e.TryCampaign(none); return err },
		"Leader":               func() error { _, err := e.Leader(none); return err },
		"Resign":               func() error { return e.Resign(none) },
		"Observe": func() error {
			for _, err := range e.Observe(none) {
				return err
			}
			return nil
		},
		"a zero Elector": func() error { _, err := (&elector.Elector{}).Campaign(t.Context()); return err },
		"its Close":      func() error { return (&elector.Elector{}).Close() },
		"its Leader":     func() error { _, err := (&elector.Elector{}).Leader(t.Context()); return err },
	} {
		if err := call(); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("%s: %v is not ErrInvalid", what, err)
		}
	}
}

// A lines collects what is logged.
type lines struct {
	slog.Handler
	mutex *sync.Mutex
	told  *[]string
}

func (l lines) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.mutex.Lock()
	defer l.mutex.Unlock()
	*l.told = append(*l.told, text)
	return nil
}

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler       { return l }

func logged() (*slog.Logger, *[]string) {
	told := &[]string{}
	return slog.New(lines{slog.DiscardHandler, new(sync.Mutex), told}), told
}

// The cause of a loss has the store's last error, and a reason that changes is
// logged.
func TestCauseOfALoss(t *testing.T) {
	logger, told := logged()
	onStage(t, elector.Options{TTL: time.Minute, Logger: logger}, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		s.fault.Always(fault.Fails(backends.ErrUnavailable))
		pass(25 * time.Second)
		s.fault.Always(fault.Fails(backends.ErrDenied))
		<-l.Context().Done()
		pass(time.Second)
		if err := l.Check(); !errors.Is(err, elector.ErrLost) || !errors.Is(err, elector.ErrDenied) || errors.Is(err, elector.ErrUnavailable) {
			t.Errorf("the cause of the loss: %v", err)
		}
		var fails []string
		for _, line := range *told {
			if strings.Contains(line, "renewal fails") {
				fails = append(fails, line)
			}
		}
		// One that is under way when the lease ends has no error of its own yet.
		if len(fails) != 2 || !strings.Contains(fails[0], "not available") || !strings.Contains(fails[1], "denied") {
			t.Errorf("what is logged of renewals that fail:\n%s", strings.Join(fails, "\n"))
		}
	})
}

// "Works again" is logged when it does, and not when it breaks the next time; a
// watch that breaks at once each time does not work.
func TestWatchWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, told := logged()
		s := memory.NewStore()
		w := &fragile{Watcher: s.Handle(), breaks: 3}
		win(t, join(t, s.Handle(), elector.Options{}))
		waits := join(t, w, elector.Options{Logger: logger})
		go waits.Campaign(t.Context())
		pass(time.Hour)
		count := func(what string) (n int) {
			for _, line := range *told {
				if strings.Contains(line, what) {
					n++
				}
			}
			return n
		}
		if fails, works := count("watching the record fails"), count("watching the record works again"); fails != 1 || works != 1 {
			t.Errorf("of a watch that broke three times and then worked was logged that it fails %d times, and that it works %d times:\n%s", fails, works, strings.Join(*told, "\n"))
		}
	})
}

// A waiter logs each leader once, however often it reads, and not a vacant record.
func TestLeadersInTheLog(t *testing.T) {
	for name, open := range map[string]func(*memory.Store) backends.Backend{
		"pushed": func(s *memory.Store) backends.Backend { return s.Handle() },
		"polled": func(s *memory.Store) backends.Backend { return blind{s.Handle()} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger, told := logged()
				s := memory.NewStore()
				first, second := join(t, s.Handle(), elector.Options{ID: "first"}), join(t, s.Handle(), elector.Options{ID: "second"})
				a := win(t, first)
				waits := campaign(t, join(t, open(s), elector.Options{Logger: logger}))
				pass(time.Hour)
				if err := first.ResignTo(t.Context(), "second"); err != nil {
					t.Fatal(err)
				}
				b := win(t, second)
				pass(time.Hour)
				if err := b.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				wait(t, waits, "the waiter leads")
				want := []string{
					fmt.Sprintf("elector: campaign waits while the election is held leader=first token=%d", a.Token()),
					fmt.Sprintf("elector: campaign waits while the election is held leader=second token=%d", b.Token()),
				}
				lines := slices.DeleteFunc(slices.Clone(*told), func(line string) bool { return !strings.Contains(line, "waits") })
				if !slices.Equal(lines, want) {
					t.Errorf("the log is\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
				}
			})
		})
	}
}

// A release that succeeds after failures is logged, also when another call makes
// it.
func TestReleaseWorksAgain(t *testing.T) {
	logger, told := logged()
	onStage(t, elector.Options{TTL: time.Minute, Logger: logger}, func(t *testing.T, s *stage) {
		works := func() (n int) {
			for _, line := range *told {
				if strings.HasPrefix(line, "elector: release works again token=") {
					n++
				}
			}
			return n
		}
		l := win(t, s.e)
		s.fault.Always(fault.Fails(backends.ErrUnavailable))
		resigned := begin(func() error { return l.Release(t.Context()) })
		pass(time.Second)
		if works() != 0 {
			t.Errorf("while the store is down: %q", *told)
		}
		s.plain()
		if err := wait(t, resigned, "Release returns"); err != nil || works() != 1 {
			t.Errorf("when the store is back: %v, %q", err, *told)
		}
		if err := win(t, s.e).Release(t.Context()); err != nil || works() != 1 {
			t.Errorf("a release that works at once: %v, %q", err, *told)
		}
	})
}

// A fragile backend's watches break at once, the first ones.
type fragile struct {
	backends.Watcher
	breaks int
}

func (f *fragile) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if f.breaks--; f.breaks >= 0 {
		return errors.New("the connection broke")
	}
	return f.Watcher.Watch(ctx, name, changed)
}

// A backend whose Watch ends without a reason is a backend in trouble.
func TestWatchWithoutAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		l := win(t, join(t, s.Handle(), elector.Options{}))
		next := campaign(t, join(t, unreasoned{s.Handle()}, elector.Options{}))
		pass(time.Minute)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(t, next, "a candidate whose watches end leads")
	})
}

type unreasoned struct{ backends.Backend }

func (unreasoned) Watch(context.Context, string, func(backends.Record)) error { return nil }

func (unreasoned) WatchPresence(context.Context, string, backends.Record) error { return nil }

// A Trace callback may resign the lease of which it is told.
func TestResignInAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *elector.Elector
		e = join(t, memory.New(), elector.Options{Trace: &elector.Trace{Acquired: func(context.Context, elector.LeaseInfo) {
			if err := e.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}}})
		l := win(t, e)
		if err := l.Check(); !errors.Is(err, elector.ErrResigned) {
			t.Error(err)
		}
	})
}
