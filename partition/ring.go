package partition

import (
	"slices"
	"time"

	"github.com/elector-go/elector/internal/rule"
)

// A member that is no deputy watches the members that follow it in the plan, as in a ring.
// Whatever set of members dies, one that lives stands before one that died, and replaces it.
// Then it reads all seats, and finds the others.

// mostDeposals is how many seats a member replaces at the same time.
const mostDeposals = 16

// following returns the seats that this member watches: those that follow its own in the plan.
func (f *follower) following() (seats []int) {
	n := 1
	if f.many() {
		n = 3
	}
	positions := f.group.known.positions
	own := slices.IndexFunc(positions, func(at position) bool { return at.seat == f.s.own.Seat })
	for i := 1; i < len(positions) && len(seats) < n; i++ {
		if at := positions[(own+i)%len(positions)]; at.seat != noSeat {
			seats = append(seats, at.seat)
		}
	}
	return seats
}

// mourn looks for a seat of the plan whose holder is gone. If no deputy writes a plan without it,
// this member reads all seats and does, after some time, which is random so that not all do at
// once.
func (f *follower) mourn() {
	g := f.group
	before, planned := f.rank(deputies)
	gone := planned && f.trouble == nil && before == deputies && slices.ContainsFunc(g.known.positions, func(at position) bool {
		return at.seat != noSeat && slices.Contains(f.seats, at.seat) && f.gone(at.seat)
	})
	switch now := g.now(); {
	case !gone:
		f.mends = 0
	case f.mends == 0:
		f.mends = now + g.options.RenewEvery/4 + time.Duration(g.random()%uint64(g.options.RenewEvery/2))
		f.seatsAt = min(f.seatsAt, f.mends)
	case f.mends <= now:
		f.changed = min(f.changed, f.mends-g.o.Settle) // a crash has been waited for
	}
}

// gone reports whether the latest read of a seat has shown that nobody holds it, or no longer.
func (f *follower) gone(seat int) bool {
	s := f.snapshot(seat)
	return s.Any && !f.foreign[seat] && (s.Record.Vacant() || f.latest >= s.Free)
}

// deposable returns when this member replaces the holder of a seat: after the deputies, and
// those that stand nearer before it in the plan.
func (f *follower) deposable(seat int) time.Duration {
	s := f.snapshot(seat)
	if seat == f.s.own.Seat || f.foreign[seat] || s.Record.Vacant() || s.Free == rule.Never {
		return rule.Never
	}
	if !f.all && f.latest < s.Free { // the holder may have renewed since
		return rule.Never
	}
	before, planned := f.rank(deputies)
	if !f.all && planned {
		before += slices.Index(f.seats, seat)
	}
	late := time.Duration(before) * f.group.options.RenewEvery / 4
	return max(s.Free+late, f.steady+2*f.group.options.RenewEvery)
}
