package stage

import (
	"context"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestPulse(t *testing.T) {
	p := &Pulse{}
	// Late by 90 ms, by 1 ms, by 40 ms, and not again since.
	for _, at := range []time.Duration{1000, 1010, 1110, 1121, 1131, 1181, 1191} {
		p.Tick(at * ms)
	}
	for _, c := range []struct{ from, until, total, longest time.Duration }{
		{1000, 1190, 130, 90},
		{0, 5000, 130 + 3799, 3799}, // the last gap has not ended
		{1060, 1160, 50 + 19, 50},
		{1110, 1141, 0, 0},
		{1200, 1210, 0, 0},
	} {
		if got, want := p.Between(c.from*ms, c.until*ms), (Standstill{c.total * ms, c.longest * ms}); got != want {
			t.Errorf("between %d and %d ms: %v; want %v", c.from, c.until, got, want)
		}
	}
	if got := (&Pulse{}).Between(0, time.Hour); got != (Standstill{}) {
		t.Errorf("without a tick: %v", got)
	}
}

// However often it is run, it ticks and ends.
func TestPulseRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &Pulse{}
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	for ticked := false; !ticked; {
		p.mutex.Lock()
		ticked = p.last > 0
		p.mutex.Unlock()
	}
	cancel()
	<-ended
}
