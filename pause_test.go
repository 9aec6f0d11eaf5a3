package elector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/operate"
)

// pause pauses the election from another process.
func (s *stage) pause(p operate.Pause) <-chan error {
	e := s.candidate(elector.Options{ID: "operator"})
	return begin(func() error { return e.Operator().Pause(s.t.Context(), p) })
}

// paused pauses the election and waits for that.
func (s *stage) paused(p operate.Pause) {
	s.t.Helper()
	if err := wait(s.t, s.pause(p), "the election is paused"); err != nil {
		s.t.Fatal(err)
	}
}

// A pause drains the leader, and then no candidate leads until the election is resumed:
// neither those that wait nor those that come later.
func TestPause(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second}, func(t *testing.T, s *stage) {
		l := s.run()
		next := s.rival()
		observed, observer := make(chan elector.Leader, 9), s.candidate(elector.Options{})
		go func() {
			for l, err := range observer.Observe(t.Context()) {
				if err == nil {
					observed <- l
				}
			}
		}()
		wait(t, observed, "the leader is observed")
		paused := s.pause(operate.Pause{Reason: "migration 42"})
		pass(15 * time.Second)
		if !errors.Is(context.Cause(l.Context()), elector.ErrRequested) || l.Check() != nil {
			t.Errorf("the leader's context has the cause %v, and Check returns %v", context.Cause(l.Context()), l.Check())
		}
		isNot(t, paused, "Pause returns while the worker drains")
		s.end()
		if err := wait(t, paused, "Pause returns"); err != nil {
			t.Fatal(err)
		}
		later := s.rival()
		pass(100 * time.Hour)
		isNot(t, next, "a candidate that waited leads")
		isNot(t, later, "a candidate that came later leads")
		isNot(t, s.leads, "the former leader leads")

		e := s.candidate(elector.Options{ID: "another"})
		want := operate.Pause{Reason: "migration 42", By: "operator"}
		if shown, err := e.Leader(t.Context()); err != nil || !shown.Vacant() || shown.Pause == nil || *shown.Pause != want {
			t.Errorf("the leader is %+v, %v", shown, err)
		}
		for {
			if shown := wait(t, observed, "the pause is observed"); shown.Pause != nil {
				break
			}
		}
		_, err := e.TryCampaign(t.Context())
		if !errors.Is(err, elector.ErrPaused) || !errors.Is(err, elector.ErrHeld) || !strings.Contains(err.Error(), `by "operator": "migration 42"`) {
			t.Errorf("the error of TryCampaign is %v", err)
		}
		if err := e.Operator().Pause(t.Context(), operate.Pause{}); !errors.Is(err, elector.ErrPaused) || !strings.Contains(err.Error(), "operator") {
			t.Errorf("the error of another Pause is %v", err)
		}
		if err := e.Operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-next:
		case <-later:
		case <-s.leads:
		case <-time.After(time.Second):
			t.Error("no candidate leads within a second of Resume")
		}
		if shown := wait(t, observed, "the end of the pause is observed"); shown.Pause != nil {
			t.Errorf("the leader is %+v", shown)
		}
		if err := e.Operator().Resume(t.Context()); !errors.Is(err, operate.ErrNotPaused) || !strings.Contains(err.Error(), "leads with token") {
			t.Errorf("the error of another Resume is %v", err)
		}
		terms := s.terms()
		if !strings.Contains(terms, "pause by operator paused") || !strings.Contains(terms, "resume by another resigned") {
			t.Errorf("the history is %s", terms)
		}
	})
}

// A pause with a time is over on each candidate's own clock, from when it has seen it.
func TestPauseFor(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		next := func(o elector.Options) <-chan *elector.Lease { return campaign(t, s.candidate(o)) }
		win(t, s.e)
		early := next(elector.Options{})
		s.e.Resign(t.Context())
		l := wait(t, early, "the candidate leads")
		waits, e := next(elector.Options{}), s.candidate(elector.Options{})
		observed := begin(func() (shown []elector.Leader) {
			for l, err := range e.Observe(t.Context()) {
				if shown = append(shown, l); err != nil || l.Pause == nil && len(shown) > 1 && shown[len(shown)-2].Pause != nil {
					return shown
				}
			}
			return shown
		})
		pass(time.Second)
		paused := s.pause(operate.Pause{For: time.Hour})
		<-l.Context().Done()
		l.Release(t.Context())
		if err := wait(t, paused, "Pause returns"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		pass(30 * time.Minute)
		late := s.candidate(elector.Options{})
		if shown, err := late.Leader(t.Context()); err != nil || shown.Pause == nil || shown.Pause.For != time.Hour {
			t.Errorf("the leader is %+v, %v", shown, err)
		}
		pass(29*time.Minute + 59*time.Second)
		isNot(t, waits, "a candidate leads during the pause")
		pass(2 * time.Second)
		if _, err := late.TryCampaign(t.Context()); !errors.Is(err, elector.ErrHeld) {
			t.Errorf("the error of a candidate that has seen the pause for less is %v", err)
		}
		wait(t, waits, "the candidate that has seen all of the pause leads")
		if took := time.Since(start); took < time.Hour || took > time.Hour+5*time.Second {
			t.Errorf("it leads after %v", took)
		}
		if shown := wait(t, observed, "the end of the pause is observed"); len(shown) < 2 {
			t.Errorf("observed are %+v", shown)
		}
	})
}

// What must not pause an election, or is refused.
func TestPauseRefused(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		win(t, s.e)
		for name, p := range map[string]operate.Pause{
			"a reason of 10 kB":      {Reason: strings.Repeat("a", 10<<10)},
			"a reason of 257 bytes":  {Reason: strings.Repeat("a", 257)},
			"a reason with a NUL":    {Reason: "a\x00"},
			"a reason that is wrong": {Reason: "\xff"},
			"a negative time":        {For: -time.Second},
			"no time at all":         {For: time.Nanosecond},
			"too long a time":        {For: 367 * 24 * time.Hour},
		} {
			if err := s.e.Operator().Pause(t.Context(), p); !errors.Is(err, elector.ErrInvalid) {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
		never, err := elector.New(s.store.Handle(), "never-used", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer never.Close()
		if err := never.Operator().Pause(t.Context(), operate.Pause{}); !errors.Is(err, elector.ErrNotLeader) || !strings.Contains(err.Error(), "is the name right") {
			t.Errorf("the error for an election that was never used is %v", err)
		}
		if err := never.Operator().Resume(t.Context()); !errors.Is(err, operate.ErrNotPaused) {
			t.Errorf("the error of Resume for an election that was never used is %v", err)
		}
		if content := s.store.Get("never-used"); content != nil {
			t.Errorf("it has a record: %s", content)
		}
		if err := s.e.Operator().Resume(t.Context()); !errors.Is(err, operate.ErrNotPaused) {
			t.Errorf("the error of Resume for an election that is held is %v", err)
		}
		full := backends.Extensions(`{"k_other":"` + strings.Repeat("a", backends.MaxExtensions-len("k_other")) + `"}`)
		noRoom := func(what string) {
			s.edit(func(r *backends.Record) { r.Extensions = full })
			writes := s.fault.Count("swap")
			if err := s.e.Operator().Pause(t.Context(), operate.Pause{}); !errors.Is(err, elector.ErrInvalid) || !strings.Contains(err.Error(), "no room") {
				t.Errorf("the error for %s without room is %v", what, err)
			}
			if n := s.fault.Count("swap") - writes; n != 0 {
				t.Errorf("a pause of %s without room is refused after %d writes", what, n)
			}
		}
		noRoom("the record of a leader")
		if _, err := s.e.Lease(); err != nil {
			t.Errorf("after that the leader leads no more: %v", err)
		}
		s.edit(func(r *backends.Record) { r.Extensions = "" })
		s.e.Resign(t.Context())
		if err := s.e.Operator().Resume(t.Context()); !errors.Is(err, operate.ErrNotPaused) {
			t.Errorf("the error of Resume for an election that is vacant is %v", err)
		}
		noRoom("a vacant record")
		if !s.vacant() {
			t.Error("after that the election is held")
		}
	})
}

// The longest pause fits, and its reason comes back as it was.
func TestPauseReason(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		for _, reason := range []string{"", " ", `"%41" \ <&>;`, strings.Repeat("é", 128), strings.Repeat("\n", 256)} {
			s.paused(operate.Pause{Reason: reason, For: 366 * 24 * time.Hour})
			l, err := s.e.Leader(t.Context())
			if err != nil || l.Pause == nil || l.Pause.Reason != reason || l.Pause.For != 366*24*time.Hour {
				t.Errorf("%.40q: the leader is %+v, %v", reason, l, err)
			}
			if err := s.e.Operator().Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A dead leader's election is paused after C.
func TestPauseDead(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		r := s.record()
		r.Holder, r.TTL, r.RenewEvery, r.Attempt.Nonce = "dead", 10*time.Minute, time.Minute, "dead"
		s.store.Put("bubble", backends.Encode("bubble", r))
		next := s.rival()
		pass(time.Second)
		start, paused := time.Now(), s.pause(operate.Pause{})
		pass(10*time.Minute + 59*time.Second - time.Second)
		isNot(t, next, "a candidate leads before C")
		isNot(t, paused, "the election is paused before C")
		if err := wait(t, paused, "the election is paused"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 11*time.Minute {
			t.Errorf("the election of a dead leader is paused after %v", took)
		}
	})
}

// A pauser that dies on the way leaves an ordinary election.
func TestPauserDies(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		f, b := fault.Wrap(s.store.Handle())
		dead := make(chan struct{})
		f.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "swap" && c.Next.Vacant() {
				<-ctx.Done()
				return backends.Record{}, ctx.Err()
			}
			return send(ctx)
		})
		e := join(t, b, elector.Options{ID: "operator"})
		go func() {
			defer close(dead)
			if err := e.Operator().Pause(t.Context(), operate.Pause{}); err == nil {
				t.Error("a pause that was not written returns nil")
			}
		}()
		wait(t, dead, "Pause returns")
		wait(t, s.rival(), "another candidate leads")
	})
}

// Two processes that pause at once: one does, and the other learns of it.
func TestPauseTwice(t *testing.T) {
	for _, ids := range [][2]string{{"one", "two"}, {"same", "same"}} {
		onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
			l := campaign(t, s.e)
			lease := wait(t, l, "the candidate leads")
			var paused []<-chan error
			for i := range ids {
				e := s.candidate(elector.Options{ID: ids[i]})
				paused = append(paused, begin(func() error { return e.Operator().Pause(t.Context(), operate.Pause{Reason: fmt.Sprint(i)}) }))
			}
			<-lease.Context().Done()
			lease.Release(t.Context())
			var good int
			for _, p := range paused {
				switch err := wait(t, p, "Pause returns"); {
				case err == nil:
					good++
				case !errors.Is(err, elector.ErrPaused):
					t.Errorf("the error is %v", err)
				}
			}
			if shown, err := s.e.Leader(t.Context()); err != nil || shown.Pause == nil || good != 1 {
				t.Errorf("%d pauses have succeeded; the leader is %+v, %v", good, shown, err)
			}
		})
	}
}

// The leader itself may pause, without and within Run, which campaigns again.
func TestPauseByLeader(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		s.run()
		s.end()
		if err := wait(t, begin(func() error { return s.e.Operator().Pause(t.Context(), operate.Pause{}) }), "Pause returns"); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		isNot(t, s.leads, "the leader leads on")
		isNot(t, s.ran, "Run returns")
		if err := s.e.Operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(t, s.leads, "Run leads again")
	})
}

// A version that does not know the pause leads no paused election: the mark is critical.
// One that was edited by hand is a pause without an end, and a record that a hand has given
// a holder is held.
func TestPauseEdited(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		s.paused(operate.Pause{For: time.Minute})
		r := s.record()
		mark := r.Extensions.Class('c')
		if mark == "" || mark.Critical() != "c_pause" {
			t.Fatalf("the critical extensions of a pause are %s", mark)
		}
		for _, text := range []string{"", "x", "60000", "-1 a b", "99999999999999 a b"} {
			r.Attempt.Sequence++
			r.Extensions, _ = r.Extensions.With("c_pause", text)
			s.store.Put("bubble", backends.Encode("bubble", r))
			next := s.rival()
			pass(48 * time.Hour)
			isNot(t, next, "a candidate leads: "+text)
			if l, err := s.e.Leader(t.Context()); err != nil || l.Pause == nil {
				t.Errorf("%q: the leader is %+v, %v", text, l, err)
			}
		}
		if err := s.e.Operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		s.paused(operate.Pause{})
		r := s.record()
		r.Holder = "hand"
		s.store.Put("bubble", backends.Encode("bubble", r))
		start := time.Now()
		next := s.rival()
		pass(time.Second)
		if l, err := s.e.Leader(t.Context()); err != nil || l.ID != "hand" || l.Pause != nil {
			t.Errorf("the leader is %+v, %v", l, err)
		}
		wait(t, next, "a candidate replaces the holder")
		if took := time.Since(start); took < 66/4*time.Second {
			t.Errorf("it leads after %v", took)
		}
	})
}

// edit replaces the record by hand.
func (s *stage) edit(edit func(r *backends.Record)) {
	r := s.record()
	edit(&r)
	s.store.Put("bubble", backends.Encode("bubble", r))
}

// After a restore the leader seen before it may still lead. Pause and Resume wait for that
// without a flood of requests.
func TestPauseDistrusted(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(r *backends.Record)
		do     func(ctx context.Context, e *elector.Elector) error
	}{
		{"pause", func(r *backends.Record) { r.Holder, r.TTL, r.Token = "first", 24*time.Hour, 5 },
			func(ctx context.Context, e *elector.Elector) error { return e.Operator().Pause(ctx, operate.Pause{}) }},
		{"resume", func(r *backends.Record) {
			r.TTL, r.Token = 24*time.Hour, 5
			r.Extensions, _ = r.Extensions.With("c_pause", "0 by why")
		}, func(ctx context.Context, e *elector.Elector) error { return e.Operator().Resume(ctx) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
				s.edit(c.before)
				ctx, cancel := context.WithCancel(t.Context())
				f, b := fault.Wrap(s.store.Handle())
				f.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
					switch n := f.Count("load"); {
					case n == 2: // the restore
						s.edit(func(r *backends.Record) {
							r.Token--
							r.Attempt.Nonce = "restored"
							if r.TTL = 10 * time.Second; r.Holder != "" {
								r.Holder = "second"
							}
						})
					case n > 1000:
						cancel()
					}
					return send(ctx)
				})
				e, start := join(t, b, elector.Options{ID: "operator"}), time.Now()
				done := begin(func() error { return c.do(ctx, e) })
				pass(26 * time.Hour)
				isNot(t, done, "it is done before C of the first leader")
				if err := wait(t, done, "it is done"); err != nil || time.Since(start) < 26*time.Hour+24*time.Minute {
					t.Errorf("after %v and %d reads: %v", time.Since(start), f.Count("load"), err)
				}
			})
		})
	}
}

// What another version keeps in the record stays, although it leaves no room for the pause.
func TestPauseRoom(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		f, b := fault.Wrap(s.store.Handle())
		kept := strings.Repeat("a", 1850)
		f.Next("swap", nil, func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			s.edit(func(r *backends.Record) {
				var err error
				if r.Extensions, err = r.Extensions.With("k_other", kept); err != nil {
					t.Error(err)
				}
			})
			return send(ctx)
		})
		e := join(t, b, elector.Options{})
		if err := e.Operator().Pause(t.Context(), operate.Pause{Reason: strings.Repeat("why ", 60)}); err == nil {
			t.Error("a pause that does not stand returns nil")
		}
		if x, _ := s.record().Extensions.Get("k_other"); x != kept || !s.vacant() {
			t.Errorf("the record is %.200v", s.record())
		}
	})
}

// After a crash other candidates may go first, for whatever reason: the pauser waits then.
func TestPausePreferred(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		s.edit(func(r *backends.Record) {
			r.Holder, r.TTL, r.RenewEvery, r.Attempt.Nonce = "dead", time.Minute, 20*time.Second, "dead"
			r.Extensions, _ = r.Extensions.With("t_bid", "1 nonce preferred")
		})
		f, b := fault.Wrap(s.store.Handle())
		ctx, cancel := context.WithCancel(t.Context())
		f.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
			if f.Count("load") > 1000 {
				cancel()
			}
			return send(ctx)
		})
		if err := join(t, polled{b}, elector.Options{}).Operator().Pause(ctx, operate.Pause{}); err != nil {
			t.Errorf("after %d reads: %v", f.Count("load"), err)
		}
	})
}

// A pauser whose acquisition was applied, although that was not answered, goes on from there.
func TestPauseInDoubt(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		f, b := fault.Wrap(s.store.Handle())
		f.Next("swap", func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			f.Next("load", fault.RequestLost) // the read-back
			return fault.ReplyLost(ctx, c, send)
		})
		e, start := join(t, b, elector.Options{ID: "operator", TTL: time.Minute}), time.Now()
		if err := e.Operator().Pause(t.Context(), operate.Pause{}); err != nil || time.Since(start) > 30*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// A pause that stands is no failure because it could not be read at once.
func TestPauseUnread(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		f, b := fault.Wrap(s.store.Handle())
		f.Next("load", fault.RequestLost)
		f.Next("swap", nil, func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			f.Next("load", fault.RequestLost)
			return send(ctx)
		})
		if err := join(t, b, elector.Options{}).Operator().Pause(t.Context(), operate.Pause{}); err != nil || f.Pending() != 0 {
			t.Errorf("%d reads did not fail: %v", f.Pending(), err)
		}
	})
}

// Pause returns an error if the record does not have the pause any more.
func TestPauseGone(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
			e := join(t, forgetful{s.store.Handle(), new(atomic.Int32)}, elector.Options{})
			if err := e.Operator().Pause(t.Context(), operate.Pause{}); !errors.Is(err, elector.ErrMisconfigured) || !strings.Contains(err.Error(), "drops") {
				t.Error(err)
			}
		})
	})
	t.Run("resumed", func(t *testing.T) {
		onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
			f, b := fault.Wrap(s.store.Handle())
			f.Next("swap", nil, func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
				r, err := send(ctx)
				if err := s.candidate(elector.Options{}).Operator().Resume(t.Context()); err != nil {
					t.Error(err)
				}
				return r, err
			})
			if err := join(t, b, elector.Options{}).Operator().Pause(t.Context(), operate.Pause{}); !errors.Is(err, operate.ErrNotPaused) {
				t.Error(err)
			}
		})
	})
}

// Pause returns when its context ends, and upon Close.
func TestPauseEnds(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		s.run()
		e, mine := s.candidate(elector.Options{}), errors.New("mine")
		ctx, cancel := context.WithCancelCause(t.Context())
		paused := begin(func() error { return e.Operator().Pause(ctx, operate.Pause{}) })
		pass(time.Second)
		cancel(mine)
		if err := wait(t, paused, "Pause returns"); !errors.Is(err, mine) {
			t.Errorf("after the end of its context: %v", err)
		}
		paused = begin(func() error { return e.Operator().Pause(t.Context(), operate.Pause{}) })
		pass(time.Second)
		e.Close()
		if err := wait(t, paused, "Pause returns"); !errors.Is(err, elector.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A campaign logs the pause, also if it has seen the pauser lead before.
func TestPauseLogged(t *testing.T) {
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		var log bytes.Buffer
		waits := s.candidate(elector.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		l := win(t, s.e)
		campaign(t, waits)
		f, b := fault.Wrap(s.store.Handle())
		f.Next("swap", nil, nil, fault.Slow(time.Second)) // the request, the acquisition and the release
		e := join(t, b, elector.Options{ID: "operator"})
		paused := begin(func() error { return e.Operator().Pause(t.Context(), operate.Pause{Reason: "why"}) })
		<-l.Context().Done()
		l.Release(t.Context())
		if err := wait(t, paused, "the election is paused"); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		if text := log.String(); strings.Count(text, "pause by operator") != 1 || strings.Count(text, "while the election is paused") != 1 {
			t.Errorf("it logs\n%s", text)
		}
	})
}

// Where the store pushes nothing, the pauser sees the vacancy before its head start is over,
// even if the leader renews much less often than that lasts.
func TestPauseHeadStart(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Hour}, func(t *testing.T, s *stage) {
		s.end()
		s.run()
		c := s.crowd(elector.Options{TTL: time.Hour}, false, names(2)...)
		pass(3*time.Hour + time.Minute)
		e := join(t, polled{s.store.Handle()}, elector.Options{ID: "operator"})
		if err := wait(t, begin(func() error { return e.Operator().Pause(t.Context(), operate.Pause{}) }), "Pause returns"); err != nil {
			t.Error(err)
		}
		isNot(t, c.by, "another candidate leads before the pause")
	})
}
