package network

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A mutant breaks what the cases are to find: a backend, or a candidate's
// clock. The zero mutant breaks nothing.
type mutant struct {
	backend func(backends.Backend) backends.Backend
	clock   func(id string) clock.Clock // nil for one that is right
}

// TestMutants runs cases on candidates that are broken in one way. The named
// case must fail, and say which rule was broken.
func TestMutants(t *testing.T) {
	t.Parallel()
	p := open(t, stores.Etcd)
	for name, m := range map[string]struct {
		mutant
		caughtBy, says string
	}{
		"a holder's clock that runs at half the rate": {
			mutant{clock: rate("A", 0.5)}, "part/holder", "guarantee 2"},
		"a holder's clock that runs at half the rate, with answers that are late": {
			mutant{clock: rate("A", 0.5)}, "exp/from-send", "guarantee 2"},
		"a holder's clock that runs at half the rate, and all requests hang": {
			mutant{clock: rate("A", 0.5)}, "ren/hung", "guarantee 2"},
		"a challenger's clock that runs at twice the rate": {
			mutant{clock: rate("B", 2)}, "mx/takeover-bound", "guarantee 3"},
		"a challenger's clock that runs at twice the rate, and the record vanishes": {
			mutant{clock: rate("B", 2)}, "mx/vanished", "guarantee 3"},
		"a challenger's clock that runs at twice the rate, and the record goes back": {
			mutant{clock: rate("C", 2)}, "mx/rollback", "guarantee 3"},
		"a challenger's clock that runs at twice the rate, after a late write": {
			mutant{clock: rate("B", 2)}, "amb/delayed-write", "guarantee 3"},
		"a write without an answer that counts as done": {
			mutant{backend: func(b backends.Backend) backends.Backend { return optimist{b} }}, "part/one-way", "guarantee 1"},
		"an acquisition without an answer that counts as done": {
			mutant{backend: func(b backends.Backend) backends.Backend { return optimist{b} }}, "amb/acquire", "the write is given up"},
		"a release that compares with nothing": {
			mutant{backend: func(b backends.Backend) backends.Backend { return blunt{b} }}, "amb/release", "after the release was sent again the record is"},
		"a release without an answer that counts as done": {
			mutant{backend: func(b backends.Backend) backends.Backend { return optimist{b} }}, "res/fail-retry", "that never reached the store succeeds"},
		"a holder that gives up at the first error": {
			mutant{backend: func(b backends.Backend) backends.Backend { return quitter{b} }}, "ren/one-hang", "A's lease is renewed"},
		"a holder that gives up at the first error, of many": {
			mutant{backend: func(b backends.Backend) backends.Backend { return quitter{b} }}, "ren/transient", "A's lease is renewed"},
		"a holder that gives up after an answer that was lost": {
			mutant{backend: func(b backends.Backend) backends.Backend { return quitter{b} }}, "amb/renew", "a renewal works again"},
		"a holder's clock that runs at half the rate, and the last answer is late": {
			mutant{clock: rate("A", 0.5)}, "ren/slow-then-cut", "guarantee 2"},
		"challengers' clocks that run at four times the rate": {
			mutant{clock: func(id string) clock.Clock {
				if id == "A" {
					return nil
				}
				return rate(id, 4)(id)
			}}, "many/candidates", "guarantee 1"},
		"a challenger that is not woken": {
			mutant{backend: func(b backends.Backend) backends.Backend { return &stale{Backend: b, held: true} }}, "res/handover", "a leader that resigned is replaced"},
		"a challenger's clock that runs at a fifth of the rate": {
			mutant{clock: rate("B", 0.2)}, "part/store-restart", "there is a leader again"},
		"a refusal without its type": {
			mutant{backend: func(b backends.Backend) backends.Backend { return mumbler{b} }}, "auth/denied", "ErrDenied"},
		"an observer whose reads never fail and are never fresh": {
			mutant{backend: func(b backends.Backend) backends.Backend { return &stale{Backend: b} }}, "obs/resume", "an observer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var run faultCase
			for _, c := range cases {
				if c.name == m.caughtBy {
					run = c
				}
			}
			here := p
			if run.alone {
				here = open(t, stores.Etcd)
			}
			spy := &spy{T: t}
			done := make(chan struct{})
			go func() { // a fatal failure ends its goroutine
				defer close(done)
				runCase(spy, here, run, func(s *scene) { s.mutant, s.patience = m.mutant, 12*time.Second })
			}()
			<-done
			said := spy.said()
			if said == "" {
				t.Fatalf("%s does not catch it", run.name)
			}
			if !strings.Contains(said, m.says) {
				t.Fatalf("%s fails and does not say %q:\n%s", run.name, m.says, said)
			}
		})
	}
}

// A spy takes the failures of a case for itself.
type spy struct {
	*testing.T
	mutex    sync.Mutex
	failures []string
}

func (s *spy) note(format string, args ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func (s *spy) said() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return strings.Join(s.failures, "\n")
}

func (s *spy) Errorf(format string, args ...any) { s.note(format, args...) }
func (s *spy) Error(args ...any)                 { s.note("%v", args) }
func (s *spy) Fatalf(format string, args ...any) { s.note(format, args...); runtime.Goexit() }
func (s *spy) Fatal(args ...any)                 { s.note("%v", args); runtime.Goexit() }

// rate gives one candidate a clock that runs at another rate. Its timers are as
// wrong as what it reads.
func rate(id string, rate float64) func(string) clock.Clock {
	return func(of string) clock.Clock {
		if of != id {
			return nil
		}
		return &crooked{start: clock.System{}.Now(), rate: rate}
	}
}

// A crooked clock runs at another rate than the machine's, since its start.
type crooked struct {
	clock.System
	start clock.Reading
	rate  float64
}

func (c *crooked) Now() clock.Reading {
	now := c.System.Now()
	return clock.Reading{
		Mono: c.start.Mono + time.Duration(float64(now.Mono-c.start.Mono)*c.rate),
		Wall: c.start.Wall + time.Duration(float64(now.Wall-c.start.Wall)*c.rate),
	}
}

func (c *crooked) Boot() time.Duration { return 0 }

func (c *crooked) AfterFunc(d time.Duration, f func()) func() bool {
	return c.System.AfterFunc(time.Duration(float64(d)/c.rate), f)
}

func (c *crooked) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.System.WithTimeout(ctx, time.Duration(float64(d)/c.rate))
}

// An optimist takes every write that was not refused for done, and is a little
// faster than the elector's patience.
type optimist struct{ backends.Backend }

func (b optimist) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/2))
	defer cancel()
	r, err := b.Backend.Swap(ctx, name, prev, next)
	if err != nil && !errors.Is(err, backends.ErrConflict) {
		next.Version = backends.Version("done " + next.Attempt.String()) // another one each time
		return next, nil
	}
	return r, err
}

// A blunt backend releases whatever is there.
type blunt struct{ backends.Backend }

func (b blunt) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	r, err := b.Backend.Swap(ctx, name, prev, next)
	for next.Vacant() && err != nil && ctx.Err() == nil {
		if prev, err = b.Backend.Load(ctx, name); err == nil {
			r, err = b.Backend.Swap(ctx, name, prev, next)
		}
	}
	return r, err
}

// A quitter takes every trouble for a deposition.
type quitter struct{ backends.Backend }

func (b quitter) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/2))
	defer cancel()
	r, err := b.Backend.Swap(ctx, name, prev, next)
	if err != nil && prev.Attempt.Nonce == next.Attempt.Nonce {
		err = backends.ErrDeposed
	}
	return r, err
}

// A mumbler does not say why it is refused.
type mumbler struct{ backends.Backend }

func (b mumbler) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	r, err := b.Backend.Swap(ctx, name, prev, next)
	return r, mumbled(err)
}

func (b mumbler) Load(ctx context.Context, name string) (backends.Record, error) {
	r, err := b.Backend.Load(ctx, name)
	return r, mumbled(err)
}

func mumbled(err error) error {
	if errors.Is(err, backends.ErrDenied) {
		return errors.New("something is wrong")
	}
	return err
}

// A stale backend answers the last that it has read when it can read nothing,
// or if held is set once another candidate leads, and from then on always.
type stale struct {
	backends.Backend
	held  bool
	mutex sync.Mutex
	last  backends.Record
	fixed bool
}

func (b *stale) Load(ctx context.Context, name string) (backends.Record, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.fixed {
		return b.last, nil
	}
	r, err := b.Backend.Load(ctx, name)
	if err != nil && b.last.Exists() {
		b.fixed = true
		return b.last, nil
	}
	b.last, b.fixed = r, b.held && !r.Vacant()
	return r, err
}
