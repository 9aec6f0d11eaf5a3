package elector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// An acquisition is what its writer knows of its own writes. One goroutine at a
// time owns it: that of the campaign, then the lease's, then the one that tells
// the store.
type acquisition struct {
	e      *Elector
	token  uint64 // of the latest write, and of the one that the store shows once it does
	nonce  string
	record backends.Record // ours, as the store last showed it; none before that
	number uint64          // of the latest write
	sent   writes

	// For the vacancy.
	successor string       // ID of the candidate that the leader named
	why       annex.Reason // for the end of the term
	pause     *annex.Pause // of the election; nil if it goes on

	releases *backoff
}

// A write is a write of an acquisition that may still count.
type write struct {
	number   uint64
	start    clock.Reading // before it was sent
	token    uint64
	vacant   bool
	value    string
	critical backends.Extensions
}

// Writes are those of an acquisition.
type writes []write

// of returns the write with a number, if it may still count.
func (s writes) of(number uint64) (w write, ok bool) {
	for _, w := range s {
		if w.number == number {
			return w, true
		}
	}
	return write{}, false
}

// only leaves one: none of the others can count any more.
func (s *writes) only(w write) { *s = append((*s)[:0], w) }

// next returns the record to write in place of prev, and records that it is sent now.
// A renewal passes on all extensions, an acquisition only kept ones, and a release
// those and the successor.
func (a *acquisition) next(prev backends.Record, holder, value string) backends.Record {
	o := &a.e.o
	if a.number++; a.number > 1 {
		a.number += a.e.draw() % strides
	}
	start := clock.Mark(a.e.clock)
	now := time.Unix(0, int64(start.Wall))
	if !prev.Exists() { // others may have led and their records gone, since it was claimed
		a.token = rule.Token(a.token-1, 0, start.Wall)
	}
	r := backends.Record{Holder: holder, Token: a.token, TTL: o.TTL, RenewEvery: o.RenewEvery,
		Attempt: backends.Attempt{Nonce: a.nonce, Sequence: a.number}, Value: value}
	switch {
	case prev.Attempt.Nonce != a.nonce:
		r.Extensions = annex.Acquired(prev, holder, a.token, now)
		if a.e.seat {
			r.Extensions = rule.Replaced(r.Extensions, prev)
		}
	case holder == "":
		r.Extensions = a.e.annex.Released(prev, a.why, a.successor, a.pause, now)
	default:
		r.Extensions = a.e.annex.Renewed(prev)
	}
	a.sent = append(a.sent, write{a.number, start, a.token, holder == "", value, r.Extensions.Class('c')})
	return r
}

// strides is by how much the numbers of two writes may differ. They do not follow each
// other, so that a number that another process has written by hand is not taken for that
// of a write under way.
const strides = 1 << 16

// differs returns how a state differs from what was written with its attempt, nil
// if it is ours. Other processes may change extensions, except critical ones.
func (a *acquisition) differs(r backends.Record) error {
	w, sent := a.sent.of(r.Attempt.Sequence)
	o := &a.e.o
	holder := o.ID
	if w.vacant {
		holder = ""
	}
	switch {
	case !r.Exists():
		return errors.New("it is gone; if it was not deleted by hand, look for a rule in the store that expires or deletes data")
	case r.Attempt.Nonce != a.nonce && r.Vacant():
		return fmt.Errorf("it is vacant after token %d", r.Token)
	case r.Attempt.Nonce != a.nonce:
		return fmt.Errorf("%q holds it with token %d", r.Holder, r.Token)
	case !sent:
		return fmt.Errorf("%w: it shows a write of this process that is out of date", ErrTokenRegressed)
	case r.Token != w.token || r.Holder != holder || r.TTL != o.TTL || r.RenewEvery != o.RenewEvery || r.Value != w.value:
		return fmt.Errorf("it was edited by hand: holder %.80q, token %d, TTL %v, renewal interval %v, value %.80q", r.Holder, r.Token, r.TTL, r.RenewEvery, r.Value)
	case r.Extensions.Class('c') != w.critical:
		return fmt.Errorf("another process has changed its critical extensions: %.200s", r.Extensions.Class('c'))
	}
	return nil
}

// shown takes the state of a record that does not differ.
func (a *acquisition) shown(r backends.Record) { a.record, a.token = r, r.Token }

var errLate = errors.New("the lease was over before the store could take it")

// vacate replaces the record by a vacancy, as the last renewal: as long as the store shows
// that the record is ours, and only before the lease that this state began is over. It first
// reads a record that it does not know.
func (a *acquisition) vacate() error {
	e := a.e
	ctx, cancel := e.clock.WithTimeout(context.Background(), e.o.ReleaseTimeout)
	defer cancel()
	defer a.releases.rest()
	why := &failure{transient, errLate}
	overtaken := false
	for {
		var f *failure
		if timely := a.timely(); a.record.Exists() && timely() {
			if !e.pace(ctx) {
				return e.ended(ctx, why)
			}
			release := &swap{prev: a.record, size: 2 * store.Size(a.record), may: timely,
				next: func() backends.Record { return a.next(a.record, "", "") }}
			if _, f, _ = e.swap(ctx, e.asks(swapping, store.Gain), release); f == nil {
				a.releases.over("token", a.token)
				return nil
			}
			why = f
		}
		r, readBack := e.load(ctx, e.asks(loading, store.Gain).alone())
		moved := false
		if readBack == nil {
			switch err := a.differs(r); {
			case r.Vacant(), r.Attempt.Nonce != a.nonce: // applied, or not ours any more
				a.releases.over("token", a.token)
				return nil
			case err != nil:
				return fmt.Errorf("the record still names this process, but %w", err)
			}
			moved = r.Version != a.record.Version
			a.record = r
		} else if f == nil {
			why = readBack
		}
		switch {
		case f.endsRelease():
			return f.err
		case readBack.endsRelease():
			return readBack.err
		case a.outlived():
			return why.err
		case moved && !overtaken: // another process has changed an extension
			overtaken = true
			continue
		}
		if !a.releases.pause(ctx, why) {
			return why.err
		}
	}
}

// timely returns a function that reports whether a release of the record as it was shown
// last may still be sent.
func (a *acquisition) timely() func() bool {
	w, _ := a.sent.of(a.record.Attempt.Sequence)
	clk, hold := a.e.clock, a.e.o.hold()
	return func() bool { return clock.Elapsed(clk, w.start) < hold }
}

// outlived reports whether no release may be sent any more, whichever of its writes the store
// shows.
func (a *acquisition) outlived() bool {
	for _, w := range a.sent {
		if !w.vacant && clock.Elapsed(a.e.clock, w.start) < a.e.o.hold() {
			return false
		}
	}
	return true
}
