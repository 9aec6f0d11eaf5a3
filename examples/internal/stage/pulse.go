package stage

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/clock"
)

// A Pulse ticks, and so notices when the machine stands still: when other
// programs have the processors, or a virtual machine is paused, nothing that the
// demo waits for can happen.
type Pulse struct {
	mutex sync.Mutex
	last  time.Duration // the last tick
	gaps  []gap
}

// A gap is a time in which the machine stood still.
type gap struct{ from, until time.Duration }

// beat is the time from tick to tick. One that is late by more is a gap.
const beat = 10 * time.Millisecond

// run ticks until ctx ends.
func (p *Pulse) run(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		p.Tick(clock.Shared())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Tick notes that the machine runs.
func (p *Pulse) Tick(now time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if g, stood := p.gapUntil(now); stood {
		p.gaps = append(p.gaps, g)
	}
	p.last = now
}

// gapUntil returns the gap since the last tick, if there is one.
func (p *Pulse) gapUntil(now time.Duration) (gap, bool) {
	return gap{p.last + beat, now}, p.last > 0 && now > p.last+2*beat
}

// A Standstill is how long the machine stood still in some time.
type Standstill struct{ Total, Longest time.Duration }

// Between returns the standstill between two times, of which the second may be
// now.
func (p *Pulse) Between(from, until time.Duration) (s Standstill) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	gaps := p.gaps
	if g, stands := p.gapUntil(until); stands {
		gaps = append(gaps[:len(gaps):len(gaps)], g)
	}
	for _, g := range gaps {
		if stood := min(g.until, until) - max(g.from, from); stood > 0 {
			s.Total += stood
			s.Longest = max(s.Longest, stood)
		}
	}
	return s
}
