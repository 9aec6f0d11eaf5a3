package elector

import (
	"math"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/clock"
)

// known are the extensions that this version understands: see
// backends.Extensions.
var known = []string{}

// A view holds what this process has seen of an election's record, and decides
// when the process may take over (the challenger rule) and with which token. It
// survives from one attempt to the next. Every state of a record enters here, by
// read, pushed or wrote.
type view struct {
	clock clock.Clock
	o     *Options

	mutex  sync.Mutex
	any    bool            // a read has succeeded
	record backends.Record // the latest state seen
	since  time.Duration   // monotonic, after the response that first showed its attempt
	handed bool            // the latest state, if vacant, is the end of a tenure that was seen
	news   bool            // the latest state has not been traced

	last    backends.Record // the latest state seen that was a record at all
	before  time.Duration   // TTL of the leader before that, unless it was seen to resign
	held    time.Duration   // monotonic: no takeover before, see distrust
	highest uint64          // token
	count   uint64          // of states seen: shows what a read overlapped with
	claim   claim           // of this Elector's latest acquisition

	place string // in line, as the store has shown it last

	aside      string        // nonce of the acquisition that was given up upon a request, see standAside
	asideUntil time.Duration // monotonic
}

// A sight is the latest state of a record and when its attempt was first shown.
type sight struct {
	record backends.Record
	since  time.Duration
}

// look returns what was seen last.
func (v *view) look() sight {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return sight{v.record, v.since}
}

// mark returns the number of states seen so far, for read.
func (v *view) mark() uint64 {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.count
}

// read enters a state that a read has shown. It returns false, and ignores the
// state, if that may be older than one seen and something else was seen since
// mark: the answer may be late, and only another read shows whether the record
// really went back.
func (v *view) read(r backends.Record, mark uint64) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.mayBeOlder(r) && v.count != mark {
		v.doubtCreation(r)
		return false
	}
	v.see(r)
	return true
}

// wrote enters the state that this process's own acknowledged write has made from
// prev. Nothing can stand between the two.
func (v *view) wrote(prev, r backends.Record) {
	v.mutex.Lock()
	if v.any && prev.Exists() && prev.Version == v.record.Version {
		defer v.mutex.Unlock()
		v.see(r)
		return
	}
	v.mutex.Unlock()
	v.pushed(r)
}

// pushed enters a state that the store has pushed. Such a state may have been
// overtaken: pushed returns false if it may be older than one seen, and only a
// read can settle that. (If the record did go back, and changes again before that
// read, only the later change is seen: a store that loses a write and shows
// another state at once is outside of what we promise.)
//
// Two things about an older state count all the same. A record that vanished has
// vanished, although it may be back. And where there was no record, one with a
// lower token may be a winner's, and may be gone before it is read: it counts as
// seen, and as vanished.
func (v *view) pushed(r backends.Record) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if !v.mayBeOlder(r) {
		v.see(r)
		return true
	}
	switch {
	case !r.Exists():
		v.distrust(0)
	case !v.record.Exists() && r.Attempt.Nonce != v.last.Attempt.Nonce:
		v.claim.met(r.Attempt.Nonce)
		if !r.Vacant() {
			v.distrust(r.TTL)
		}
	default:
		v.doubtCreation(r)
	}
	return false
}

// doubtCreation records that an older state was shown but not believed: its record
// may have come and gone while a creation of this process was on its way.
func (v *view) doubtCreation(r backends.Record) {
	if v.claim.creates && r.Exists() {
		v.claim.met(r.Attempt.Nonce)
	}
}

// mayBeOlder reports whether r may be an earlier state than one seen: the record is
// gone, its token or its attempt is lower, or it has the attempt that was seen
// last, with other extensions.
func (v *view) mayBeOlder(r backends.Record) bool {
	if !r.Exists() {
		return v.record.Exists()
	}
	return r.Token < v.last.Token || v.earlier(r) || r.Attempt == v.record.Attempt && r.Version != v.record.Version
}

// earlier reports whether r is an earlier state of the acquisition seen last.
func (v *view) earlier(r backends.Record) bool {
	return r.Attempt.Nonce == v.last.Attempt.Nonce && r.Attempt.Sequence < v.last.Attempt.Sequence
}

// see enters a state that is believed. A state that is shown again has stood all
// the time, whatever happened in between.
func (v *view) see(r backends.Record) {
	if v.any && r.Version == v.record.Version {
		return
	}
	// A missing or older record is no evidence of who leads: the leader seen
	// last may not know of it yet.
	if v.last.Exists() && (!r.Exists() || r.Token < v.last.Token) {
		v.distrust(0)
	}
	if r.Exists() && (v.earlier(r) || restored(r, v.last)) {
		v.claim.contest()
	}
	if !v.any || !extended(r, v.record) {
		v.since = v.clock.Now().Mono
	}
	v.handed = v.record.Exists() && (!v.record.Vacant() || v.handed && r.Attempt == v.record.Attempt)
	v.any, v.record, v.news = true, r, true
	v.count++
	if r.Exists() {
		v.claim.met(r.Attempt.Nonce)
		if r.Attempt.Nonce != v.aside {
			v.aside = ""
		}
		if r.Attempt.Nonce != v.last.Attempt.Nonce {
			v.before = 0
			if !v.last.Vacant() {
				v.before = v.last.TTL
			}
		}
		v.last = r
		v.highest = max(v.highest, r.Token)
	}
}

// extended reports whether another process has made r from s, by adding or changing
// an extension: such a change is no sign of life of the leader. Otherwise the same
// state under another version was restored, and another leader may have come and
// gone since.
func extended(r, s backends.Record) bool {
	if r.Extensions == s.Extensions || !r.Extensions.Names(s.Extensions) {
		return false
	}
	r.Version, r.Extensions = "", ""
	s.Version, s.Extensions = "", ""
	return r == s
}

// restored reports whether r is the state s, put back by a restore or by hand.
func restored(r, s backends.Record) bool {
	return r.Attempt == s.Attempt && r.Version != s.Version && !extended(r, s)
}

// distrust counts the election as held for as long as the last leader seen may
// believe that it leads; or the leader seen before it, whose record may be the
// newer one: made after the other had vanished, with a lower token because its
// writer never saw the other, which may have been shown late; or another leader
// with this TTL.
func (v *view) distrust(ttl time.Duration) {
	if v.last.Exists() {
		v.held = max(v.held, v.clock.Now().Mono+v.o.challenge(max(v.last.TTL, v.before, ttl)))
	}
	v.claim.contest()
}

// forever is longer than any wait.
const forever = time.Duration(math.MaxInt64)

// claimable returns the monotonic time from which the record, as it was last
// seen and if its attempt does not change, may be taken over.
func (v *view) claimable() time.Duration {
	switch {
	case v.record.Extensions.Critical(known...) != "":
		return forever
	case v.record.Vacant(), v.claim.free(v.record.Attempt.Nonce):
		return v.held
	}
	return max(v.held, v.since+v.o.challenge(v.record.TTL))
}

// chance returns the version last seen, the time from which this candidate tries
// to replace it, and whether it is the successor, which tries before the others.
func (v *view) chance(headStart func(backends.Record) time.Duration) (version backends.Version, from time.Duration, next bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	turn, _ := v.turn(headStart)
	return v.record.Version, max(v.claimable(), turn), v.successor() == v.o.ID
}

// try begins an acquisition that replaces r. It checks that the acquisition is
// allowed in the same step, so that no state is missed that speaks against it.
// free is false if it is not. The token is that of the acquisition.
func (v *view) try(r backends.Record, nonce string) (token uint64, sane, free bool, err error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	now := v.clock.Now()
	token, sane, err = v.nextToken(now.Wall)
	free = v.claimable() <= now.Mono && v.record.Version == r.Version
	if free && err == nil {
		v.claim = claim{nonce: nonce, creates: !r.Exists()}
	}
	return token, sane, free, err
}

// nextToken returns the token of an acquisition that replaces the record last
// seen. The time of day is only a floor, for the day when a record is deleted or
// rolled back, or a service moves to another store. nextToken ignores a wall that
// cannot be right; sane reports that.
func (v *view) nextToken(wall time.Duration) (token uint64, sane bool, err error) {
	token = max(v.highest+1, v.record.Token+1, uint64(v.o.MinToken), 1)
	sane = wall > since2020 && wall < until2200
	if sane {
		token = max(token, uint64(wall/time.Microsecond))
	}
	if token > backends.MaxToken {
		return 0, sane, ErrTokenExhausted
	}
	return token, sane, nil
}

var (
	since2020 = time.Duration(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	until2200 = time.Duration(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
)

// believes reports whether no state seen since the first write of an acquisition
// speaks against it. Although the store has applied the acquisition, a record may
// have come and gone between the write and its application, and the holder of
// that record may still lead. The acquisition's record is then taken over like
// any other.
func (v *view) believes(next backends.Record) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.claim.state == trying && next.Token >= v.highest && v.held <= v.clock.Now().Mono
}

// mayRetry reports whether no state seen since the first write of an acquisition
// speaks against another write. It is not enough that prev still stands: the
// version of a missing record comes back, when another candidate wins in between
// and its record vanishes.
func (v *view) mayRetry(prev, next backends.Record) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Attempt.Nonce == next.Attempt.Nonce {
		return true // a push has shown that it was applied: read it back
	}
	return v.record.Version == prev.Version && v.claim.state == trying && next.Token > v.highest && v.claimable() <= v.clock.Now().Mono
}

// doubt records that the outcome of a write of the latest acquisition is unknown.
func (v *view) doubt() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.claim.doubted = true
}

// abandon records that the work under an acquisition has stopped, or never began.
// It reports whether this Elector may now retake the record at once, and so may
// tell the store that it is vacant.
func (v *view) abandon(nonce string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.claim.abandon(nonce)
	return v.claim.free(nonce)
}

// standBack makes this candidate count the election as held for a while after it
// was deposed, because it would be the quickest to win it back. It does nothing
// if there is a successor already.
func (v *view) standBack(nonce string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Attempt.Nonce == nonce {
		v.distrust(0)
	}
}

// leader returns who leads, according to a state just seen.
func (v *view) leader(r backends.Record) Leader {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	q := annex.RequestOf(r)
	l := Leader{ID: r.Holder, Token: Token(r.Token), Value: r.Value, TTL: r.TTL, Successor: annex.Next(r).ID, RequestedBy: q.By, Draining: q.Draining}
	if v.any && r.Version == v.record.Version {
		now := v.clock.Now().Mono
		l.Unchanged = now - v.since
		l.Lapsed = !r.Vacant() && r.Extensions.Critical(known...) == "" && now >= v.lapse()
	}
	return l
}

// lapse returns the monotonic time at which the lease that the record shows is
// over.
func (v *view) lapse() time.Duration { return v.since + v.o.challenge(v.record.TTL) }

// lapses is lapse, for callers that wait for it.
func (v *view) lapses() time.Duration {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Extensions.Critical(known...) != "" {
		return forever
	}
	return v.lapse()
}

// heldBy returns why a state just seen may not be taken over.
func (v *view) heldBy(r backends.Record) *failure {
	err := &HeldError{Leader: v.leader(r)}
	name := r.Extensions.Critical(known...)
	switch {
	case name != "":
		err.Reason = "its record has the extension " + name + ", which a newer version of this library wrote and this version does not know; upgrade this process"
	case err.Leader.ID == "":
		err.Reason = "its record names no leader, but has just changed, vanished or gone back, so that a leader seen before may still lead; or this process was deposed and stands back. It is free TTL*(1+ClockDrift) later"
	}
	return &failure{holding, err}
}

// takeNews returns the leader according to the latest state, and whether that was
// not traced before.
func (v *view) takeNews() (Leader, bool) {
	v.mutex.Lock()
	news, r := v.news, v.record
	v.news = false
	v.mutex.Unlock()
	return v.leader(r), news
}

// A claim answers one question: if the store shows this Elector's latest
// acquisition, may the Elector believe it, and may it retake the record when the
// work is over?
//
// Only one version of a record comes back: "there is no record". So a creation
// that was on its way all the time can be applied after other records have come
// and gone, and the holder of one of them may still lead. The store then shows an
// acquisition that this Elector had given up, or a lease that it had lost.
type claim struct {
	nonce   string
	creates bool // the acquisition replaces "there is no record"
	doubted bool // the outcome of one of its writes is unknown
	state   claimState
}

type claimState uint8

const (
	trying    claimState = iota // under way or held, and nothing speaks against it
	abandoned                   // its work has stopped, and nothing speaks against it
	contested                   // since its first write another acquisition was seen, or the record went back, vanished or was put back
)

// met records which acquisition a record shows.
func (c *claim) met(nonce string) {
	if nonce != c.nonce {
		c.contest()
	}
}

func (c *claim) contest() { c.state = contested }

// abandon records that the acquisition is over. A creation in doubt stays as it
// is: it may be applied at any later time.
func (c *claim) abandon(nonce string) {
	if nonce == c.nonce && c.state == trying && !(c.creates && c.doubted) {
		c.state = abandoned
	}
}

// free reports whether a record that shows the acquisition may be retaken.
func (c *claim) free(nonce string) bool { return c.state == abandoned && nonce == c.nonce }
