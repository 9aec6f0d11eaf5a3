package electortest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
)

// With the defaults: the TTL, how long a holder trusts its lease, how long a
// challenger waits, and the time between renewals.
const (
	ttl        = 15 * time.Second
	hold       = ttl * 9 / 10
	challenge  = ttl * 11 / 10
	renewEvery = hold / 3
)

// scripted runs a test in a bubble. Its worker does nothing, and the leases that the
// worker got are in leases.
func scripted(t *testing.T, test func(t *testing.T, s *electortest.Script, leases <-chan *elector.Lease)) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "office", nil)
		leases := make(chan *elector.Lease, 99)
		s.Start(func(ctx context.Context) error {
			return s.Elector.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
				leases <- l
				<-ctx.Done()
				return nil
			})
		})
		s.Win()
		test(t, s, leases)
	})
}

func TestOutage(t *testing.T) {
	scripted(t, func(t *testing.T, s *electortest.Script, leases <-chan *elector.Lease) {
		first := <-leases
		time.Sleep(time.Minute + time.Second)
		start := time.Now()
		s.Outage()
		err := s.Loss()
		if took := time.Since(start); took < hold-renewEvery || took > hold {
			t.Errorf("the lease is over after %v, want %v to %v", took, hold-renewEvery, hold)
		}
		if !errors.Is(err, elector.ErrLost) || !errors.Is(err, elector.ErrUnavailable) || first.Check() == nil || first.Context().Err() == nil {
			t.Errorf("Loss returns %v, Check %v, and the context %v", err, first.Check(), first.Context().Err())
		}
		start = time.Now()
		if _, err := s.Elector.Leader(t.Context()); !errors.Is(err, elector.ErrUnavailable) || time.Since(start) != renewEvery/2 {
			t.Errorf("a read in an outage, after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Hour)
		s.Restore()
		start = time.Now()
		s.Win()
		if took := time.Since(start); took > 2*renewEvery {
			t.Errorf("it leads %v after the store is back", took)
		}
		if second := <-leases; second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
	})
}

func TestSlow(t *testing.T) {
	scripted(t, func(t *testing.T, s *electortest.Script, leases <-chan *elector.Lease) {
		l := <-leases
		s.Slow(2 * time.Second) // RequestTimeout is 2.25 s
		start := time.Now()
		if _, err := s.Elector.Leader(t.Context()); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("a read of a store that is slow by 2 s, after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Hour)
		if err := l.Check(); err != nil {
			t.Errorf("on a slow store: %v", err)
		}
		s.Slow(3 * time.Second)
		start = time.Now()
		if err := s.Loss(); !errors.Is(err, elector.ErrUnavailable) || time.Since(start) > hold {
			t.Errorf("on a store that is slower than RequestTimeout, after %v: %v", time.Since(start), err)
		}
		s.Restore()
		s.Win()
	})
}

func TestDepose(t *testing.T) {
	scripted(t, func(t *testing.T, s *electortest.Script, _ <-chan *elector.Lease) {
		start := time.Now()
		s.Depose()
		if err := s.Loss(); !errors.Is(err, elector.ErrDeposed) || !errors.Is(err, elector.ErrLost) || time.Since(start) > 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		s.Win()
		if took := time.Since(start); took < challenge || took > challenge+renewEvery {
			t.Errorf("it leads again after %v, want %v", took, challenge)
		}

		s.Depose()
		s.Win() // so that Loss returns the end of this term
		s.Outage()
		if err := s.Loss(); !errors.Is(err, elector.ErrUnavailable) || errors.Is(err, elector.ErrDeposed) {
			t.Errorf("in the outage after a deposition: %v", err)
		}
	})
}

func TestPause(t *testing.T) {
	scripted(t, func(t *testing.T, s *electortest.Script, leases <-chan *elector.Lease) {
		l := <-leases
		time.Sleep(time.Minute)
		left := l.Remaining()
		s.Pause(left - 1)
		if err := l.Check(); err != nil || l.Remaining() != 1 {
			t.Errorf("after a pause that is shorter than the lease: %v, with %v left", err, l.Remaining())
		}
		l = wonAfter(t, s, l, leases)
		s.Pause(time.Minute)
		if err := l.Check(); !errors.Is(err, elector.ErrLost) {
			t.Errorf("after a pause that is longer than the lease: %v", err)
		}
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took > renewEvery {
			t.Errorf("the context ends after %v, want at most %v", took, renewEvery)
		}
		wonAfter(t, s, l, leases)
	})
}

// wonAfter returns the lease that the candidate has once the time of l is over.
func wonAfter(t *testing.T, s *electortest.Script, l *elector.Lease, leases <-chan *elector.Lease) *elector.Lease {
	t.Helper()
	if err := s.Loss(); !errors.Is(err, elector.ErrLost) || l.Check() == nil {
		t.Errorf("Loss returns %v, Check %v", err, l.Check())
	}
	s.Win()
	next := <-leases
	if next.Token() <= l.Token() || next.Check() != nil {
		t.Errorf("token %d after %d: %v", next.Token(), l.Token(), next.Check())
	}
	return next
}

func TestAnotherLeads(t *testing.T) {
	scripted(t, func(t *testing.T, s *electortest.Script, leases <-chan *elector.Lease) {
		mine := <-leases
		other := s.AnotherLeads("b", "b:80")
		if mine.Check() == nil || other.Check() != nil || other.Token() <= mine.Token() {
			t.Errorf("the candidate: token %d, %v; the other: token %d, %v", mine.Token(), mine.Check(), other.Token(), other.Check())
		}
		if err := s.Loss(); !errors.Is(err, elector.ErrLost) {
			t.Errorf("the candidate lost its lease: %v", err)
		}
		leader := func() string {
			l, err := s.Elector.Leader(t.Context())
			return fmt.Sprintln(l.ID, l.Value, l.Token == other.Token(), err)
		}
		if got := leader(); got != "b b:80 true <nil>\n" {
			t.Errorf("the candidate sees %s", got)
		}
		third := s.AnotherLeads("c", "c:80")
		if err := other.Check(); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("the second of three leaders: %v", err)
		}
		other = third
		if got := leader(); got != "c c:80 true <nil>\n" {
			t.Errorf("the candidate sees %s", got)
		}
		start := time.Now()
		if err := third.Release(t.Context()); err != nil {
			t.Error(err)
		}
		s.Win()
		if took := time.Since(start); took > renewEvery {
			t.Errorf("it leads %v after a handover", took)
		}

		// A partition that goes on while another process leads.
		s.Outage()
		s.AnotherLeads("d", "")
		if _, err := s.Elector.Leader(t.Context()); !errors.Is(err, elector.ErrUnavailable) {
			t.Errorf("in the partition: %v", err)
		}
	})
}

// An outage breaks what the store pushes, too.
func TestOutageOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "office", nil)
		other := s.AnotherLeads("other", "before")
		var seen atomic.Value
		go func() {
			for l := range s.Elector.Observe(t.Context()) {
				seen.Store(l.Value)
			}
		}()
		synctest.Wait()
		s.Outage()
		if err := other.Proclaim(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if value := seen.Load(); value != "before" {
			t.Errorf("in an outage an observer sees the value %q", value)
		}
		s.Restore()
		time.Sleep(time.Minute)
		if value := seen.Load(); value != "after" {
			t.Errorf("after the outage an observer sees the value %q", value)
		}
	})
}

// A candidate that is told to stop keeps its lease until its work is done.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "office", nil)
		result := errors.New("done")
		stop := s.Start(func(ctx context.Context) error {
			return s.Elector.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
				<-ctx.Done()
				time.Sleep(ttl - time.Second)
				if err := l.Check(); err != nil {
					t.Errorf("while it finishes its work: %v", err)
				}
				return result
			})
		})
		s.Win()
		start := time.Now()
		if err := stop(); err != result || time.Since(start) != ttl-time.Second {
			t.Errorf("after %v stop returns %v", time.Since(start), err)
		}
		if err := stop(); err != result {
			t.Errorf("the second stop returns %v", err)
		}
		if err := s.Loss(); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("its lease ended: %v", err)
		}
	})
}

// The user's callbacks see the candidate's events, before the script goes on, and no
// others.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting, won, ended atomic.Int32
		s := electortest.New(t, "office", &elector.Options{Trace: &elector.Trace{
			Waiting:  func(context.Context, elector.CampaignInfo) { waiting.Add(1) },
			Acquired: func(context.Context, elector.LeaseInfo) { won.Add(1) },
			Ended:    func(context.Context, elector.LeaseInfo) { ended.Add(1); panic("a bug") },
		}})
		other := s.AnotherLeads("other", "")
		s.Start(func(ctx context.Context) error { _, err := s.Elector.Campaign(ctx); return err })
		synctest.Wait()
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
		s.Win()
		s.Depose()
		if waiting.Load() != 1 || won.Load() != 1 || ended.Load() != 1 {
			t.Errorf("it waited %d times, won %d and lost %d, want 1 each", waiting.Load(), won.Load(), ended.Load())
		}
	})
}

// Outside a bubble the same steps work in real time. On a busy machine a lease of
// 200 ms may also end by itself.
func TestRealTime(t *testing.T) {
	s := electortest.New(t, "office", &elector.Options{TTL: 200 * time.Millisecond})
	stop := s.Start(func(ctx context.Context) error {
		return s.Elector.Run(ctx, func(ctx context.Context, _ *elector.Lease) error { <-ctx.Done(); return nil })
	})
	loss := func() {
		t.Helper()
		if err := s.Loss(); !errors.Is(err, elector.ErrLost) {
			t.Error(err)
		}
	}
	s.Win()
	s.Outage()
	loss()
	s.Restore()
	s.Win()
	s.Depose()
	loss()
	s.Win()
	s.Pause(time.Minute)
	loss()
	s.Win()
	if err := s.AnotherLeads("other", "").Release(t.Context()); err != nil && !errors.Is(err, elector.ErrLost) {
		t.Error(err)
	}
	loss()
	s.Win()
	if err := stop(); err != nil && !errors.Is(err, elector.ErrLost) {
		t.Error(err)
	}
}

// A step that waits in vain fails the test, with the reason.
func TestMessages(t *testing.T) {
	run := func(s *electortest.Script, work func(context.Context, *elector.Lease) error) func() error {
		return s.Start(func(ctx context.Context) error { return s.Elector.Run(ctx, work) })
	}
	idle := func(ctx context.Context, _ *elector.Lease) error { <-ctx.Done(); return nil }
	for name, c := range map[string]struct {
		script func(s *electortest.Script)
		want   string
	}{
		"nothing campaigns": {
			func(s *electortest.Script) { s.Win() },
			`the candidate "a" of election "office" does not lead: it does not campaign; call Start with a function that calls Run`,
		},
		"held": {
			func(s *electortest.Script) { s.AnotherLeads("b", ""); run(s, idle); s.Win() },
			`does not lead: it campaigns, and waits because of: the election is held by "b" with token`,
		},
		"outage": {
			func(s *electortest.Script) { s.Outage(); run(s, idle); s.Win() },
			`does not lead: it campaigns, and waits because of: the store is not available: no answer within 2.25s`,
		},
		"has returned": {
			func(s *electortest.Script) {
				run(s, func(context.Context, *elector.Lease) error { return errors.New("no ledger") })
				s.Win()
				s.Loss()
				s.Win()
			},
			`does not lead: the function that Start called has returned: no ledger`,
		},
		"hangs": {
			func(s *electortest.Script) {
				run(s, func(context.Context, *elector.Lease) error { time.Sleep(time.Hour); return nil })
				s.Depose()
				s.Win()
			},
			`does not lead: its last lease ended with: elector: lead "office" on memory://: the lease is lost`,
		},
		"no loss": {
			func(s *electortest.Script) { run(s, idle); s.Win(); s.Loss() },
			`has not lost a lease: it leads with token`,
		},
		"does not stop": {
			func(s *electortest.Script) {
				stop := run(s, func(context.Context, *elector.Lease) error { time.Sleep(time.Hour); return nil })
				s.Win()
				stop()
			},
			`the function that Start called has not returned within 3m30s of being told to stop; does the worker of election "office" return when its context ends?`,
		},
		"wrong options": {
			func(s *electortest.Script) { s.AnotherLeads("\x00", "") },
			`electortest: elector: open "office" on memory://: invalid option: ID has a NUL byte`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{TB: t}
				s := electortest.New(f, "office", &elector.Options{ID: "a"})
				done := make(chan bool)
				go func() { defer close(done); c.script(s) }()
				<-done
				if !strings.Contains(f.message, c.want) {
					t.Errorf("the message is %q, want %q", f.message, c.want)
				}
				time.Sleep(2 * time.Hour) // until a worker that hangs has returned
			})
		})
	}
}

// A fake test takes the message of its failure.
type fake struct {
	testing.TB
	message string
}

func (f *fake) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
