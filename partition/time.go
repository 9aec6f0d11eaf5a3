package partition

import (
	"context"
	"time"

	"github.com/elector-go/elector/internal/rule"
)

// How long a group waits, by the clock of this process.

func (g *Group) now() time.Duration { return g.clock.Now().Mono }

// wait blocks until a time, and returns true; or until it is woken or ctx ends.
func (g *Group) wait(ctx context.Context, until time.Duration, woken chan struct{}) bool {
	d := until - g.now()
	if d <= 0 {
		return true
	}
	due := make(chan struct{})
	defer g.clock.AfterFunc(d, func() { close(due) })()
	select {
	case <-due:
		return true
	case <-woken:
	case <-ctx.Done():
	}
	return false
}

// wake lets a goroutine look again that waits for the channel, which holds one value.
func wake(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default:
	}
}

// challenge is C of this process.
func (g *Group) challenge() time.Duration { return rule.Challenge(g.options.TTL, g.drift) }

// auditHold is how long a lease trusts what was last seen of its record: Hold(A).
func (g *Group) auditHold() time.Duration {
	return rule.Hold(time.Duration(g.audit.Load()), g.drift)
}
