package elector

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/store"
)

func TestJitter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e := &Elector{draw: random.Uint64}
	for _, c := range []struct{ roundTrip, span time.Duration }{
		{0, 5 * time.Millisecond}, {2 * time.Millisecond, 20 * time.Millisecond}, {time.Second, 250 * time.Millisecond},
	} {
		e.timing.roundTrip = c.roundTrip
		var slots [8]int
		for range 25_500 {
			d := e.jitter()
			if d < 0 || d >= c.span {
				t.Fatalf("jitter %v is not within %v at a round trip of %v", d, c.span, c.roundTrip)
			}
			slots[int(8*d/c.span)]++
		}
		for i := 1; i < 8; i++ {
			if ratio := float64(slots[i]) / float64(slots[i-1]); ratio < 1.4 || ratio > 2.8 {
				t.Errorf("slot %d is drawn %.1f times as often as the one before; want 2 (%v)", i, ratio, slots)
			}
		}
	}
}

// What connecting takes is no round trip, and what others are waited for is.
func TestRoundTrip(t *testing.T) {
	e, now := &timing{}, time.Hour
	read := func(d time.Duration) { now += d; e.read(now, d) }
	read(200 * time.Millisecond)
	read(time.Millisecond)
	if e.roundTrip != time.Millisecond {
		t.Errorf("after a first read, which had to connect, and one of 1 ms the round trip counts as %v", e.roundTrip)
	}
	for range 50 {
		read(20 * time.Millisecond)
	}
	if e.roundTrip < 19*time.Millisecond {
		t.Errorf("after 50 reads of 20 ms the round trip counts as %v", e.roundTrip)
	}
	read(time.Millisecond)
	if e.roundTrip < 15*time.Millisecond {
		t.Errorf("one quick read among slow ones makes the round trip count as %v", e.roundTrip)
	}
}

// A waiter that polls learns when the holder renews, and pays for it with less
// than two reads an interval.
func TestRhythm(t *testing.T) {
	t.Run("alone", func(t *testing.T) { testRhythm(t, nil, 4*time.Second, time.Second) })
	for _, every := range []time.Duration{4 * time.Second, 100 * time.Millisecond} {
		t.Run("together "+every.String(), func(t *testing.T) {
			m := store.New(memory.New(), clock.System{}, new(sync.WaitGroup))
			defer m.Reading().Leave()
			place := m.Reading()
			defer place.Leave()
			testRhythm(t, place, every, every/4+every/8)
		})
	}
}

// testRhythm fails if a renewal is seen later than a bound.
func testRhythm(t *testing.T, place *store.Place, every, bound time.Duration) {
	random := rand.New(rand.NewPCG(3, 4))
	const intervals = 40
	most, sum, latest := 0, 0, time.Duration(0)
	for round := range 100 {
		r := rhythm{offset: random.Float64()}
		phase := time.Duration(random.Int64N(int64(every)))
		drift := 1 + 0.02*(random.Float64()-0.5)
		renewals := func(at time.Duration) int64 { // up to then
			return int64(float64(at+every-phase) / (float64(every) * drift))
		}
		now := 10 * every
		seen := renewals(now)
		r.changed(now, every)
		reads, late := 0, time.Duration(0)
		for now < (10+intervals)*every {
			next := place.After(r.next(), every)
			if next <= now {
				t.Fatalf("round %d: at %v the next read is at %v", round, now, next)
			}
			now = next
			reads++
			if n := renewals(now); n == seen {
				r.same(now)
			} else {
				seen = n
				r.changed(now, every)
				if now > 20*every {
					last := time.Duration(float64(n)*float64(every)*drift) - every + phase
					late = max(late, now-last)
				}
			}
		}
		most, sum, latest = max(most, reads), sum+reads, max(latest, late)
		if late > bound {
			t.Errorf("round %d (phase %v, drift %.3f): a renewal was seen %v late", round, phase, drift, late)
		}
	}
	t.Logf("%.2f reads in an interval, at most %.2f; a renewal is seen %v late at most", float64(sum)/100/intervals, float64(most)/intervals, latest)
	if most > 2*intervals || sum > 100*intervals*3/2 {
		t.Error("too many reads")
	}
}
