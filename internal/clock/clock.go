// Package clock reads the clocks that leases are counted on.
//
// Three clocks are read because none is enough. The monotonic clock cannot be
// set, but on Linux it stands still while the machine is suspended, and so do
// timers. The wall clock goes on, but anybody may set it. The boot-time clock
// (Linux) goes on and cannot be set, but costs a system call.
package clock

import (
	"context"
	"time"
)

// A Reading is what the clocks showed at one instant. Readings of two
// machines have nothing in common and are never compared.
type Reading struct {
	Mono time.Duration // monotonic, since an arbitrary start
	Wall time.Duration // time of day, since 1970
	Boot time.Duration // boot time, 0 where there is none or it was not read
}

// A Clock is one machine's clocks and timers. Simulations have their own.
type Clock interface {
	// Now reads the monotonic and the wall clock, once and cheaply.
	Now() Reading
	// Boot reads the boot-time clock, 0 where there is none.
	Boot() time.Duration
	// AfterFunc calls f in its own goroutine after d of the monotonic clock.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// WithTimeout returns a context that ends after d of the monotonic
	// clock.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Mark reads all clocks of c: the start from which Elapsed counts.
func Mark(c Clock) Reading {
	r := c.Now()
	r.Boot = c.Boot()
	return r
}

// apart is how far the wall and the monotonic clock may differ over a lease
// before the boot-time clock is asked too. Without a step or a suspend both
// run at the same rate and differ by what passes between reading the one and
// the other. A suspend stays hidden if the wall clock is set back by its
// length to within this.
const apart = 50 * time.Microsecond

// Elapsed returns the time since start, which Mark read: the longest that any
// of the clocks can say. A suspend shows on the wall clock; if that is set back
// meanwhile, it shows on the boot-time clock. A wall clock set
// forward makes Elapsed too long, which ends a lease early and is safe; set
// back, it changes nothing.
func Elapsed(c Clock, start Reading) time.Duration {
	now := c.Now()
	mono, wall := now.Mono-start.Mono, now.Wall-start.Wall
	if difference := wall - mono; start.Boot != 0 && (difference > apart || difference < -apart) {
		mono = max(mono, c.Boot()-start.Boot)
	}
	return max(mono, wall)
}

// System is the clock of the machine that this process runs on.
type System struct{}

// started anchors the monotonic clock; only differences from it are used. It lies
// a century back, so that times are above 0 also in a bubble of testing/synctest,
// whose clock starts in 2000.
var started = time.Now().Add(-100 * 365 * 24 * time.Hour)

// Now implements Clock with a single time.Now.
func (System) Now() Reading {
	t := time.Now()
	return Reading{Mono: t.Sub(started), Wall: time.Duration(t.UnixNano())}
}

// Boot implements Clock.
func (System) Boot() time.Duration { return bootTime() }

// AfterFunc implements Clock.
func (System) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// WithTimeout implements Clock.
func (System) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// Shared is a clock that all processes of a machine share, to compare what they
// tell: boot time where there is one, which no process can set, and the time of day
// elsewhere, which must not be set meanwhile.
func Shared() time.Duration {
	if t := bootTime(); t != 0 {
		return t
	}
	return time.Duration(time.Now().UnixNano())
}
