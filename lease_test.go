package elector_test

import (
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// CheckFor counts on no renewal.
func TestCheckFor(t *testing.T) {
	onStage(t, elector.Options{TTL: 10 * time.Second}, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		hold := l.Remaining()
		s.fault.Always(fault.Fails(backends.ErrUnavailable))
		pass(hold / 4)
		for _, c := range []struct {
			name string
			d    time.Duration
			want error
		}{
			{"none", 0, nil},
			{"all that is left", l.Remaining(), nil},
			{"more than is left", l.Remaining() + 1, elector.ErrUnavailable},
			{"as long as a new lease", hold, elector.ErrUnavailable},
			{"longer than any lease", hold + 1, elector.ErrInvalid},
		} {
			if err := l.CheckFor(c.d); !errors.Is(err, c.want) {
				t.Errorf("%s: %v; want %v", c.name, err, c.want)
			}
		}
		if a, err := l.Acquisition(); err != nil || a.Remaining != l.Remaining() || a.Election != "bubble" || a.Record.Token != uint64(l.Token()) {
			t.Errorf("the acquisition is %v, %v", a, err)
		}
		pass(hold)
		ends(t, l, elector.ErrLost)
	})
	onStage(t, elector.Options{}, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends(t, l, elector.ErrResigned)
	})
}

// ends checks what a lease that is over answers: why, however long the work.
func ends(t *testing.T, l *elector.Lease, want error) {
	t.Helper()
	for _, d := range []time.Duration{-1, 0, 1, time.Hour} {
		if err := l.CheckFor(d); !errors.Is(err, want) || !errors.Is(err, elector.ErrNotLeader) {
			t.Errorf("CheckFor(%v) after the end: %v; want %v", d, err, want)
		}
	}
	if a, err := l.Acquisition(); !errors.Is(err, want) || a.Backend != nil {
		t.Errorf("the acquisition after the end is %v, %v; want %v", a, err, want)
	}
}

// An acquisition has the record that acquired, however often it was renewed.
func TestAcquisition(t *testing.T) {
	onStage(t, elector.Options{TTL: 10 * time.Second}, func(t *testing.T, s *stage) {
		l := win(t, s.e)
		first, err := l.Acquisition()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Proclaim(t.Context(), "another value"); err != nil {
			t.Fatal(err)
		}
		if a, err := l.Acquisition(); err != nil || a.Record.Attempt != first.Record.Attempt || a.Record.Value != first.Record.Value {
			t.Errorf("after a renewal the acquisition is %v, %v; before it was %v", a, err, first)
		}
	})
}

// Lease returns the lease of this process while it is valid.
func TestCurrentLease(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute}, func(t *testing.T, s *stage) {
		is := func(when string, want *elector.Lease, kind error) {
			t.Helper()
			if l, err := s.e.Lease(); l != want || !errors.Is(err, kind) {
				t.Errorf("%s the lease is %p, %v; want %p, %v", when, l, err, want, kind)
			}
		}
		is("before a campaign", nil, elector.ErrNotLeader)
		l := s.run()
		is("while it leads", l, nil)
		s.stop()
		pass(time.Second)
		is("while it drains", l, nil)
		s.end()
		pass(time.Second)
		is("after its end", nil, elector.ErrResigned)
	})
}
