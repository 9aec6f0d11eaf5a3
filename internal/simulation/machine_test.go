package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/clock"
)

// A machine is the clocks and timers of one node. Everything on it is held
// back while it is paused or suspended.
type machine struct {
	slack func(d time.Duration) time.Duration // how late a timer is, nil for exact

	mutex   sync.Mutex
	at      time.Time     // true time of the last change
	mono    time.Duration // then
	boot    time.Duration // then
	rate    float64       // of all clocks
	wall    time.Duration // what the wall clock shows more than boot
	frozen  time.Time     // the monotonic clock stands still until then
	paused  time.Time     // nothing runs until then
	held    time.Time     // no timer fires until then
	changed chan struct{} // closed and replaced when a pause is cut short

	noBoot bool // Boot is not known here
}

var _ clock.Clock = (*machine)(nil)

func newMachine(number int) *machine {
	return &machine{
		at: time.Now(), rate: 1, changed: make(chan struct{}),
		mono: time.Duration(number) * time.Hour,
		boot: time.Duration(number+1) * 7 * time.Hour,
		wall: time.Duration(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()) - time.Duration(number+1)*7*time.Hour,
	}
}

// A moment is what the clocks of a machine really stand at.
type moment struct{ mono, boot, wall time.Duration }

func (m *machine) moment() moment {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.read()
}

func (m *machine) read() moment {
	now := time.Now()
	from := m.at
	if m.frozen.After(from) {
		from = m.frozen
	}
	mono := m.mono + time.Duration(float64(max(0, now.Sub(from)))*m.rate)
	boot := m.boot + time.Duration(float64(now.Sub(m.at))*m.rate)
	return moment{mono, boot, boot + m.wall}
}

// Now implements clock.Clock.
func (m *machine) Now() clock.Reading {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.read()
	return clock.Reading{Mono: r.mono, Wall: r.wall}
}

// Boot implements clock.Clock.
func (m *machine) Boot() time.Duration {
	if m.noBoot {
		return 0
	}
	return m.moment().boot
}

// change brings the clocks up to now and changes something.
func (m *machine) change(f func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.read()
	m.at, m.mono, m.boot = time.Now(), r.mono, r.boot
	f()
}

func (m *machine) drift(rate float64)   { m.change(func() { m.rate = rate }) }
func (m *machine) step(d time.Duration) { m.change(func() { m.wall += d }) }

// pause stops everything on the machine but its clocks.
func (m *machine) pause(d time.Duration) { m.change(func() { m.paused = later(m.paused, d) }) }

// suspend stops everything on the machine, the monotonic clock too.
func (m *machine) suspend(d time.Duration) {
	m.change(func() { m.frozen, m.paused = later(m.frozen, d), later(m.paused, d) })
}

// holdTimers keeps timers from firing.
func (m *machine) holdTimers(d time.Duration) { m.change(func() { m.held = later(m.held, d) }) }

// wake ends whatever holds the machine back.
func (m *machine) wake() {
	m.change(func() {
		m.frozen, m.paused, m.held = time.Time{}, time.Time{}, time.Time{}
		close(m.changed)
		m.changed = make(chan struct{})
	})
}

func later(t time.Time, d time.Duration) time.Time {
	if u := time.Now().Add(d); u.After(t) {
		return u
	}
	return t
}

// stopped reports whether nothing runs on the machine now.
func (m *machine) stopped() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.paused.After(time.Now())
}

// runs blocks until something can happen on the machine; timers can be held
// back further.
func (m *machine) runs(timer bool) {
	for {
		m.mutex.Lock()
		until, changed := m.paused, m.changed
		if timer && m.held.After(until) {
			until = m.held
		}
		m.mutex.Unlock()
		d := time.Until(until)
		if d <= 0 {
			return
		}
		t := time.NewTimer(d + m.late(d))
		select {
		case <-t.C:
		case <-changed:
			t.Stop()
			time.Sleep(m.late(d)) // all who wait are woken at one instant
		}
	}
}

func (m *machine) late(d time.Duration) time.Duration {
	if m.slack == nil {
		return 0
	}
	return m.slack(d)
}

// until returns the true time that passes before the monotonic clock shows a
// time, if nothing changes; 0 when it does.
func (m *machine) until(mono time.Duration) time.Duration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	left := mono - m.read().mono
	if left <= 0 {
		return 0
	}
	return max(0, time.Until(m.frozen)) + max(1, time.Duration(float64(left)/m.rate))
}

// AfterFunc implements clock.Clock.
func (m *machine) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	due := m.moment().mono + d
	stopped := make(chan struct{})
	var once sync.Once // fired or stopped
	fire := func() {
		for {
			m.runs(true)
			left := m.until(due)
			if left == 0 {
				break
			}
			select {
			case <-time.After(left):
			case <-stopped:
				return
			}
		}
		run := false
		once.Do(func() { run = true })
		if run {
			f()
		}
	}
	first := m.until(due)
	t := time.AfterFunc(first+m.late(d), fire)
	return func() bool {
		first := false
		once.Do(func() { first = true; close(stopped) })
		t.Stop()
		return first
	}
}

// WithTimeout implements clock.Clock.
func (m *machine) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := m.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { stop(); cancel(nil) }
}

// sleep blocks for d of the monotonic clock, or until the context ends.
func (m *machine) sleep(ctx context.Context, d time.Duration) {
	c := make(chan struct{})
	stop := m.AfterFunc(d, func() { close(c) })
	defer stop()
	select {
	case <-c:
	case <-ctx.Done():
	}
}
