package clock

import (
	"testing"
	"time"
)

// still is a clock that shows what a test says.
type still struct {
	System
	now  Reading
	asks int
}

func (s *still) Now() Reading        { return Reading{Mono: s.now.Mono, Wall: s.now.Wall} }
func (s *still) Boot() time.Duration { s.asks++; return s.now.Boot }

func TestElapsed(t *testing.T) {
	const s = time.Second
	start := Reading{100 * s, 5000 * s, 200 * s}
	for _, c := range []struct {
		what string
		now  Reading
		want time.Duration
		boot bool // the boot-time clock must be asked
	}{
		{"all clocks agree", Reading{103 * s, 5003 * s, 203 * s}, 3 * s, false},
		{"the wall clock was set forward", Reading{103 * s, 5063 * s, 203 * s}, 63 * s, true},
		{"the wall clock was set back", Reading{103 * s, 4003 * s, 203 * s}, 3 * s, true},
		{"a suspend", Reading{103 * s, 5103 * s, 303 * s}, 103 * s, true},
		{"a suspend, then the wall clock was set back", Reading{103 * s, 4003 * s, 303 * s}, 103 * s, true},
	} {
		clock := &still{now: c.now}
		if got := Elapsed(clock, start); got != c.want || (clock.asks > 0) != c.boot {
			t.Errorf("%s: %v elapsed, want %v; boot-time clock asked %d times", c.what, got, c.want, clock.asks)
		}
		clock.asks = 0
		noBoot := start
		noBoot.Boot = 0
		if Elapsed(clock, noBoot); clock.asks > 0 {
			t.Errorf("%s: a boot-time clock that was not there at the start is asked", c.what)
		}
	}
}

func TestSystemBoot(t *testing.T) {
	var c System
	a := Mark(c)
	b := Mark(c)
	if b.Boot < a.Boot || b.Mono < a.Mono {
		t.Errorf("a clock went backwards: %+v, then %+v", a, b)
	}
}
