package elector

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// timing holds what an Elector has measured of its own requests.
type timing struct {
	mutex     sync.Mutex
	roundTrip time.Duration // of reads, smoothed
	reads     int           // that were timed
	answered  time.Duration // monotonic, when the last of them was

	wrote atomic.Int64 // monotonic, when the last write was sent; 0 if none was
}

// read records how long a read took, smoothed over about eight, without the first
// one, which may have had to connect. The time that reads wait in the backend for
// each other counts: a winner is invisible for that long. The time in which they
// wait to share a request does not: see loadBy. Of reads that are answered at one
// instant one counts, so that it makes no difference which is first.
func (t *timing) read(now, d time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.reads > 0 && now == t.answered {
		return
	}
	t.answered = now
	if t.reads++; t.reads <= 2 {
		t.roundTrip = d
	}
	t.roundTrip += (d - t.roundTrip) / 8
}

// trip returns how long a read takes.
func (t *timing) trip() time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.roundTrip
}

// now reads the monotonic clock.
func (e *Elector) now() time.Duration { return e.clock.Now().Mono }

// jitter returns how long to wait before trying to take over, so that waiters
// that wake together do not all write. Each of 8 slots is twice as likely as the
// one before it: however many processes wait, few of them draw the earliest slot
// drawn, and the others see a winner before their time comes. No process needs to
// know how many others there are.
func (e *Elector) jitter() time.Duration { return e.scattered(e.span()) }

// span is the longest that jitter returns: ten round trips, within bounds.
func (e *Elector) span() time.Duration {
	return min(max(10*e.timing.trip(), 5*time.Millisecond), 250*time.Millisecond)
}

// scattered returns a random time within span: see jitter.
func (e *Elector) scattered(span time.Duration) time.Duration {
	const slots = 8
	ticket := uint(e.random()*(1<<slots-1)) + 1 // 1 … 255, slot i from 2^i
	slot := bits.Len(ticket) - 1
	return time.Duration((float64(slot) + e.random()) * float64(span) / slots)
}

// random returns a random number from 0 to below 1.
func (e *Elector) random() float64 { return float64(e.draw()>>11) / (1 << 53) }

// newNonce names one acquisition.
func (e *Elector) newNonce() string { return fmt.Sprintf("%016x%016x", e.draw(), e.draw()) }

// tooEarly returns the time until this process may write the record again on a
// store that limits the write rate. Writes of other processes do not count: this
// process does not know their times.
func (e *Elector) tooEarly() time.Duration {
	wrote := time.Duration(e.timing.wrote.Load())
	if e.o.writeInterval == 0 || wrote == 0 {
		return 0
	}
	return wrote + e.o.writeInterval - e.now()
}

// pace blocks until this process may write the record again. It returns false
// when ctx ends first.
func (e *Elector) pace(ctx context.Context) bool { return e.sleep(ctx, e.tooEarly()) }

// sleep blocks for d of the monotonic clock. It returns false when ctx ends
// first.
func (e *Elector) sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		due, cancel := e.clock.WithTimeout(ctx, d)
		defer cancel()
		<-due.Done()
	}
	return ctx.Err() == nil
}

// halfRandom returns from a half of d up to d, a millisecond at least.
func (e *Elector) halfRandom(d time.Duration) time.Duration {
	d = max(d, time.Millisecond)
	return d/2 + time.Duration(e.random()*float64(d/2))
}

// rhythm estimates when a holder renews, from reads, so that a waiter that polls
// reads just after each renewal. What it sees is then fresh, and a takeover comes
// soon after the time that the challenger rule demands. All times are monotonic.
type rhythm struct {
	every     time.Duration // between renewals, from the record
	after, by time.Duration // the latest renewal came between these times
	unchanged time.Duration // when the latest read that showed nothing new was sent
	probed    bool          // a read in this interval showed nothing new
	offset    float64       // of this waiter, 0 to 1, so that waiters do not read together
}

// changed records that a read that was answered at that time showed a new state.
func (r *rhythm) changed(answered, every time.Duration) {
	after, by := max(r.unchanged, answered-every), answered
	if r.every == every && r.by > 0 {
		// The clocks of two machines drift apart, so the estimate widens a little
		// with each interval.
		slack := r.slack()
		shift := max((answered-r.by+every/2)/every, 1) * every
		expectAfter, expectBy := r.after+shift-slack, r.by+shift+slack
		if expectAfter < by && expectBy > after {
			after, by = max(after, expectAfter), min(by, expectBy)
		}
	}
	r.every, r.after, r.by = every, after, by
	r.unchanged, r.probed = 0, false
}

// same records that a read sent at that time showed nothing new.
func (r *rhythm) same(sent time.Duration) { r.unchanged, r.probed = sent, true }

// slack is how much the phase may shift in one interval.
func (r *rhythm) slack() time.Duration { return r.every / 128 }

// next returns when to read next. While the estimate is wide, a read in its middle
// halves it, which makes one or two reads an interval; then it is one.
func (r *rhythm) next() time.Duration {
	after, by := max(r.after+r.every, r.unchanged), r.by+r.every+r.slack()
	if r.unchanged >= by { // overdue: a little late, or missing
		if r.unchanged < by+r.every/4 {
			return r.unchanged + r.every/8
		}
		return r.unchanged + r.every/2
	}
	if !r.probed && by-after > r.every/8 {
		return (after + by) / 2
	}
	return by + time.Duration(r.offset*float64(min(100*time.Millisecond, r.every/10)))
}
