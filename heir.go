package elector

import (
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
)

// The successor is the candidate that should lead next: the one that the leader or a
// request to resign named, or the one that announced the highest priority. If the
// record names none, it is the candidate with the place in line: see line.go.
//
// It is a courtesy and decides only when a candidate tries: after a release the
// successor tries at once, and the others let it have a head start. Whether a candidate
// may lead is decided in view.go, by claimable alone. In a record with a holder a
// successor means nothing, whether the holder lives or has crashed.

// maxPriority is the highest of Options.Priority.
const maxPriority = 7

// checkSuccessor returns ErrInvalid unless id can name a successor.
func checkSuccessor(id string) error {
	if err := annex.CheckID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// longestHeadStart bounds what a dead successor costs.
const longestHeadStart = 30 * time.Second

// headStart is how long the others wait for the successor, from when they saw the
// vacancy: where the store pushes it, until the successor's write should have been seen;
// elsewhere two intervals, so that it has read the vacancy.
func (e *Elector) headStart(vacancy backends.Record) time.Duration {
	if !e.listens {
		return min(2*vacancy.RenewEvery, vacancy.TTL, longestHeadStart)
	}
	e.timing.mutex.Lock()
	defer e.timing.mutex.Unlock()
	return min(max(5*e.timing.roundTrip, 50*time.Millisecond), 500*time.Millisecond)
}

// turn returns the monotonic time from which this candidate tries to lead, and the
// other candidate that it lets try before. One that comes after the release lets
// none: the vacancy may be old, and its successor dead. The caller holds the mutex.
func (v *view) turn(headStart func(backends.Record) time.Duration) (from time.Duration, first string) {
	if v.aside != "" {
		from = v.asideUntil
	}
	if h := v.successor(); v.handed && h != "" && h != v.o.ID {
		if since := v.since + headStart(v.record); since > from {
			return since, h
		}
	}
	return from, ""
}

// successor returns the ID of that candidate, if the record last seen is a vacancy: the one
// that it names, or otherwise the candidate with the place in line. The caller holds
// the mutex.
func (v *view) successor() string {
	if !v.record.Exists() || !v.record.Vacant() {
		return ""
	}
	if id := annex.BidOf(v.record).ID; id != "" {
		return id
	}
	return inPlace(v.place, v.record)
}

// inheritance returns the vacancy last seen if this candidate is its successor, which then
// need not read it: its swap compares.
func (v *view) inheritance() (backends.Record, bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.record, v.successor() == v.o.ID
}

// yields returns why this candidate does not try now, although it may lead; nil if
// it tries. wait is how long another candidate has a head start.
func (v *view) yields(r backends.Record, headStart func(backends.Record) time.Duration) (wait time.Duration, f *failure) {
	v.mutex.Lock()
	from, first := v.turn(headStart)
	left := from - v.clock.Now().Mono
	v.mutex.Unlock()
	if left <= 0 {
		return 0, nil
	}
	err := &HeldError{Leader: v.leader(r)}
	if first == "" {
		err.Reason = "this process was requested to resign and stands back until another candidate leads, for at most " + left.String()
		return 0, &failure{holding, err}
	}
	err.Reason = fmt.Sprintf("it is vacant, and %q should lead next; other candidates wait for it, this one for %v", first, left)
	return left, &failure{holding, err}
}

// standAside makes this candidate wait after a request to resign, until another
// acquisition is seen, for at most TTL*(1+ClockDrift). It does nothing if there is
// a successor already.
func (v *view) standAside(nonce string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Attempt.Nonce == nonce {
		v.aside, v.asideUntil = nonce, v.clock.Now().Mono+v.o.challenge(v.o.TTL)
	}
}
