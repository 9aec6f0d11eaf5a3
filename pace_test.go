package elector_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// A store may bear only so many writes in a second.
type throttling struct{ backends.Backend }

func (throttling) Describe() backends.Description {
	return backends.Description{Store: "throttling://", MinTTL: 5 * time.Second, MinWriteInterval: 1200 * time.Millisecond}
}

func TestMinWriteInterval(t *testing.T) {
	_, err := elector.New(throttling{memory.New()}, "x", &elector.Options{TTL: 10 * time.Second, RenewEvery: time.Second})
	if !errors.Is(err, elector.ErrInvalid) {
		t.Errorf("renewals more often than the store allows: %v", err)
	}
	t.Run("apart", func(t *testing.T) { synctest.Test(t, writesApart) })
	t.Run("impatient", func(t *testing.T) { synctest.Test(t, proclaimsImpatiently) })
}

// Who waits for less than the interval, and tries again at once, learns that a renewal has
// published the value.
func proclaimsImpatiently(t *testing.T) {
	l := win(t, join(t, throttling{memory.New()}, elector.Options{TTL: 5 * time.Second}))
	begun, tries, err := time.Now(), 0, error(nil)
	for ; tries == 0 || err != nil && tries < 20; tries++ {
		ctx, cancel := context.WithTimeout(t.Context(), 750*time.Millisecond)
		err = l.Proclaim(ctx, "value")
		cancel()
	}
	if took := time.Since(begun); err != nil || took > 1200*time.Millisecond {
		t.Errorf("after %d tries and %v: %v", tries, took, err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func writesApart(t *testing.T) {
	var written []time.Time
	b := &refusing{Backend: throttling{memory.New()}}
	b.swapped = func(n int) error {
		written = append(written, time.Now())
		if n%3 == 0 {
			return backends.ErrUnavailable
		}
		return nil
	}
	e := join(t, b, elector.Options{TTL: 5 * time.Second})
	l := win(t, e)
	go func() {
		for range 5 { // progress, as quickly as it comes
			l.Proclaim(t.Context(), time.Now().String())
		}
	}()
	pass(time.Minute)
	if err := l.Check(); err != nil {
		t.Errorf("a store that refuses every third write costs the lease: %v", err)
	}
	// One goes on where the last one left off.
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := e.TryCampaign(t.Context()); err != nil {
		t.Error(err)
	}
	for i := range written[1:] {
		if between := written[i+1].Sub(written[i]); between < 1200*time.Millisecond {
			t.Errorf("writes %d and %d are %v apart", i+1, i+2, between)
		}
	}
	if len(written) < 30 {
		t.Errorf("%d writes in a minute show nothing", len(written))
	}
}

// refusing asks before each write whether it may be made.
type refusing struct {
	backends.Backend
	count   int
	swapped func(n int) error
}

func (r *refusing) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	r.count++
	if err := r.swapped(r.count); err != nil {
		return backends.Record{}, err
	}
	return r.Backend.Swap(ctx, name, prev, next)
}

// What this process has published is no answer to a proposal while another write, which may
// still count, has another value.
func TestProclaimedBack(t *testing.T) {
	onStage(t, elector.Options{TTL: time.Minute, Value: "old"}, func(t *testing.T, s *stage) {
		l := s.run()
		s.fault.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "swap" && c.Next.Value == "new" {
				send(ctx)
			}
			return backends.Record{}, backends.ErrUnavailable
		})
		for _, value := range []string{"new", "old", "old"} {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			if err := l.Proclaim(ctx, value); err == nil {
				t.Errorf("%s is proclaimed, and the store has not answered", value)
			}
			cancel()
		}
		s.plain()
	})
}
