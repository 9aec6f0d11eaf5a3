package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// The extensions of the records of a group: see docs/design-partitions.md.
const (
	SeatName = "c_seat" // in a partition: the seat and the incarnation that hold it
	PlanName = "c_plan" // in the plan: the form of its text
	OverName = "k_over" // in a seat: incarnations that are over
	NewName  = "t_new"  // in a partition and in the plan: see Unconfirmed
)

// maxOver is how many incarnations a seat names that are over.
const maxOver = 4

// An Incarnation is one acquisition of a seat. A partition is held through one, and only
// while that is valid.
type Incarnation struct {
	Seat  int
	Nonce string // of the acquisition
}

// String returns the text that a partition's record has.
func (i Incarnation) String() string { return strconv.Itoa(i.Seat) + " " + i.Nonce }

// Holder returns the incarnation through which a partition is or was held, or an error
// if the record is not one that a group has written.
func Holder(r backends.Record) (Incarnation, error) {
	text, ok := r.Extensions.Get(SeatName)
	if !ok {
		return Incarnation{}, fmt.Errorf("it has no extension %s, so no group has written it", SeatName)
	}
	if other := r.Extensions.Critical(SeatName); other != "" {
		return Incarnation{}, fmt.Errorf("it has the critical extension %s, of a newer version", other)
	}
	seat, nonce, _ := strings.Cut(text, " ")
	i := Incarnation{Nonce: nonce}
	var err error
	if i.Seat, err = strconv.Atoi(seat); err != nil || i.Seat < 0 || nonce == "" || i.String() != text {
		return Incarnation{}, fmt.Errorf("its extension %s is %.80q, not a seat and an incarnation", SeatName, text)
	}
	return i, nil
}

// Replaced returns the extensions of an acquisition of a seat that replaces prev: x, and
// that prev's incarnation is over. It is, as nothing else may be replaced.
func Replaced(x backends.Extensions, prev backends.Record) backends.Extensions {
	if !prev.Exists() {
		return x
	}
	over := append(overIn(prev), prev.Attempt.Nonce)
	if with, err := x.With(OverName, strings.Join(over[max(0, len(over)-maxOver):], " ")); err == nil {
		return with
	}
	return x // no room: its partitions wait for C
}

func overIn(r backends.Record) []string {
	text, _ := r.Extensions.Get(OverName)
	return strings.Fields(text)
}

// Unconfirmed reports whether a record of a group was written where there was none, and its
// writer has not written it again since. "No record" is the one version that comes back, so
// such a write can be applied late, when other records have come and gone whose owner still
// has a valid lease. It shows as little as a missing record does.
func Unconfirmed(r backends.Record) bool {
	_, is := r.Extensions.Get(NewName)
	return is
}

// Created returns the extensions of a record that is written where there is none.
func Created(x backends.Extensions) backends.Extensions {
	if with, err := x.With(NewName, ""); err == nil {
		return with
	}
	return x // records of groups have room
}

// Audit is A: how long an owner may trust what it last saw of a partition's record, for
// members with this TTL.
func Audit(ttl time.Duration) time.Duration { return 60 * ttl }

// Seats holds which incarnations are over, as far as this process has seen. One
// goroutine at a time uses it. The zero Seats has seen nothing.
type Seats struct {
	drift  float64
	gap    time.Duration // reads that are further apart do not show what was between
	over   map[Incarnation]bool
	absent map[Incarnation]absence
}

// An absence is the time during which every read of a seat has shown another incarnation,
// or none.
type absence struct {
	since time.Duration // the answer of the first such read
	sent  time.Duration // when the latest one was sent
	seen  time.Duration // its answer
}

// NewSeats returns Seats for clocks with the error drift. Reads of a seat that are further
// apart than gap do not show what was between.
func NewSeats(drift float64, gap time.Duration) *Seats {
	return &Seats{drift, gap, map[Incarnation]bool{}, map[Incarnation]absence{}}
}

// See enters what a read of incarnation i's seat has shown. The read must have been sent
// after the answer that showed a partition which names i: an earlier one may show the
// seat as it was before i.
func (s *Seats) See(i Incarnation, r backends.Record, sent, now time.Duration) {
	shown := r.Exists() && r.Attempt.Nonce == i.Nonce
	switch {
	case shown && r.Vacant(), slices.Contains(overIn(r), i.Nonce):
		s.over[i] = true
		delete(s.absent, i)
	case shown:
		delete(s.absent, i)
	default:
		a, was := s.absent[i]
		if !was || now-a.seen > s.gap {
			a.since = now
		}
		a.sent, a.seen = sent, now
		s.absent[i] = a
	}
}

// Over returns the time at which incarnation i is over, if its holder had this TTL: 0 if
// it is over, Never if nothing shows that it will be. Any other time is later than now, and
// a read that is sent then must confirm it.
func (s *Seats) Over(i Incarnation, ttl, now time.Duration) time.Duration {
	if s.over[i] {
		return 0
	}
	a, absent := s.absent[i]
	if !absent {
		return Never
	}
	if end := a.since + Challenge(ttl, s.drift); a.sent < end {
		return max(end, now+1)
	}
	return 0
}

// Forget drops what was seen of all incarnations that keep rejects.
func (s *Seats) Forget(keep func(Incarnation) bool) {
	for i := range s.over {
		if !keep(i) {
			delete(s.over, i)
		}
	}
	for i := range s.absent {
		if !keep(i) {
			delete(s.absent, i)
		}
	}
}

// A Trail is what this process has seen of one partition's record. One goroutine at a
// time uses it, but for Glimpse.
type Trail struct {
	highest atomic.Uint64 // token
	seen    time.Duration // when the record was seen last
	gone    time.Duration // since when the record is missing, the same unconfirmed one, or has a token lower than highest; 0 if it is not
	fresh   string        // the nonce of the unconfirmed record that was seen last, empty if it was not
}

// See enters a state that a read has shown, or that an own write has made. If the last one
// is further back than gap, the record may have been another meanwhile.
func (t *Trail) See(r backends.Record, now, gap time.Duration) {
	fresh := ""
	if Unconfirmed(r) {
		fresh = r.Attempt.Nonce
	}
	switch {
	case r.Exists() && r.Token >= t.highest.Load() && fresh == "":
		t.gone = 0
	case t.gone == 0 || now-t.seen > gap || fresh != t.fresh: // its writer may have a lease
		t.gone = now
	}
	t.Glimpse(r)
	t.seen, t.fresh = now, fresh
}

// Glimpse enters the token of a state that any other read has shown, which may have been
// sent before states that See knows. Many goroutines may call it.
func (t *Trail) Glimpse(r backends.Record) {
	for {
		highest := t.highest.Load()
		if r.Token <= highest || t.highest.CompareAndSwap(highest, r.Token) {
			return
		}
	}
}

// Free returns the time from which a process with a valid seat may take a partition whose
// record is r, which Trail has seen: 0 for at once; Never if r must change first, with the
// reason. own is its incarnation, through which it must have no lease on the partition and
// no write under way; founding is set if the plan is founding, and audit is A.
func (t *Trail) Free(r backends.Record, seats *Seats, own Incarnation, founding bool, audit, now time.Duration) (time.Duration, error) {
	if !r.Exists() && founding && t.highest.Load() == 0 {
		return 0, nil
	}
	var held time.Duration
	switch {
	case t.gone != 0:
		held = t.gone + Challenge(audit, seats.drift)
	case r.Exists() && r.Token < t.highest.Load(): // Glimpse was called since: see what is there now
		held = now + 1
	}
	if !r.Exists() {
		return held, nil
	}
	i, err := Holder(r)
	switch unconfirmed := Unconfirmed(r); {
	case err != nil:
		return Never, err
	case unconfirmed && founding && (r.Vacant() || i == own):
		return 0, nil
	case unconfirmed && founding:
		return min(held, seats.Over(i, r.TTL, now)), nil
	case unconfirmed, r.Vacant(), i == own:
		return held, nil
	}
	return max(held, seats.Over(i, r.TTL, now)), nil
}

// Token returns the token with which to take the partition: see Token.
func (t *Trail) Token(r backends.Record, min uint64, wall time.Duration) uint64 {
	return Token(max(t.highest.Load(), r.Token), min, wall)
}
