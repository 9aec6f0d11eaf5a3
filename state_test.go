package elector_test

import (
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/operate"
)

// State shows each state of a candidate's life.
func TestState(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute, RenewEvery: 10 * time.Second, ReleaseTimeout: time.Minute}, func(t *testing.T, s *stage) {
		is := func(when string, want elector.CandidateState) {
			t.Helper()
			pass(0)
			if got := s.e.State(); got != want {
				t.Errorf("%s: it is %q, not %q", when, got, want)
			}
		}
		is("before it campaigns", elector.Idle)
		other := s.candidate(elector.Options{ID: "other"})
		first := win(t, other)
		s.fault.Always(fault.Fails(backends.ErrUnavailable))
		won := begin(func() error { return s.e.Run(t.Context(), s.work) })
		pass(time.Second)
		is("without the store", elector.Campaigning)
		s.plain()
		pass(time.Minute)
		is("while another candidate leads", elector.Waiting)
		paused := s.pause(operate.Pause{})
		<-first.Context().Done()
		first.Release(t.Context())
		if err := wait(t, paused, "the pause"); err != nil {
			t.Fatal(err)
		}
		is("in a pause", elector.Paused)
		if err := other.Operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(t, s.leads, "it leads")
		is("when it leads", elector.Leading)
		asked := s.asks(t.Context(), 0, "")
		pass(20 * time.Second)
		is("after a request", elector.Draining)
		s.fault.Always(fault.Fails(backends.ErrUnavailable))
		pass(2 * time.Minute)
		is("after a loss, with the worker still there", elector.Stopping)
		s.plain()
		s.end()
		pass(time.Second)
		is("after the worker has returned", elector.StandingBack)
		_ = asked
		s.e.Close()
		wait(t, won, "Run returns")
		is("after Close", elector.Idle)
	})
}
