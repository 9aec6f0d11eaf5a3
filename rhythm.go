package elector

import "time"

// rhythm is when a holder renews, as learnt from reads, so that a waiter that
// polls reads just after each renewal. What it then sees is fresh, and a
// takeover comes soon after the time that the rules demand. All times are
// monotonic.
type rhythm struct {
	every     time.Duration // between renewals, from the record
	after, by time.Duration // the latest renewal came after the one and by the other
	unchanged time.Duration // when the latest read that showed nothing new was sent
	probed    bool          // a read in this interval showed nothing new
	offset    float64       // of this waiter, 0 to 1: they do not read together
}

// changed takes note that a read sent at one time and answered at another
// showed a new state.
func (r *rhythm) changed(sent, answered, every time.Duration) {
	after, by := max(r.unchanged, answered-every), answered
	if r.every == every && r.by > 0 {
		// The clocks of two machines drift apart, so what was known widens a
		// little with each interval.
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

// same takes note that a read sent at that time showed nothing new.
func (r *rhythm) same(sent time.Duration) { r.unchanged, r.probed = sent, true }

// slack is how much the phase may shift in one interval.
func (r *rhythm) slack() time.Duration { return r.every / 128 }

// next returns when to read next. While the time of renewals is known badly it
// halves the doubt by a read in the middle, which makes one or two reads an
// interval; then it is one.
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
