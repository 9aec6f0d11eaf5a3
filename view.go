package elector

import (
	"math"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// known are the extensions that this version understands: see
// backends.Extensions.
var known = []string{}

// A view is what this process has seen of an election's record, and decides when
// it may take over: guarantees 3 and 5. It survives from one try to the next.
// All that is seen of a record enters here: by read, pushed or wrote.
type view struct {
	clock clock.Clock
	o     *Options

	mutex  sync.Mutex
	any    bool            // a read has succeeded
	record backends.Record // the latest state seen
	since  time.Duration   // monotonic, after the response that first showed its attempt
	news   bool            // it has not been traced

	last    backends.Record // the latest state seen that was a record at all
	before  time.Duration   // TTL of the leader seen before, if it was not seen to resign
	held    time.Duration   // monotonic: this process does not take over before, see distrust
	highest uint64          // token
	count   uint64          // of states seen: shows what a read overlapped with
	claim   claim           // of this Elector's latest acquisition
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

// mark returns a number to give to read: of the states seen before the read.
func (v *view) mark() uint64 {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.count
}

// read notes a state that a read has shown. It returns false, and forgets it, if
// the state may be older than one seen and something else was seen since mark:
// then it may be a late answer, and only another read shows whether the record
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

// wrote notes the state that this process's own acknowledged write has made.
func (v *view) wrote(r backends.Record) { v.pushed(r) }

// pushed notes a state that the store has pushed. It is an answer that may have
// been overtaken: pushed returns false for one that may be older, which only a
// read settles. (If the record did go back, and changes again before that read, only
// the later change is seen: a store that loses a write and shows another state
// at once is outside of what we promise.)
//
// What is older is believed in two things. A record that vanished has vanished,
// although it may be back. And where there was no record, one with a lower token
// may be that of a winner, and be gone before it is read: it counts as seen, and
// as vanished.
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

// doubtCreation notes an older state that is not believed: of a record that came
// and went while a creation of this process was on its way.
func (v *view) doubtCreation(r backends.Record) {
	if v.claim.creates && r.Exists() {
		v.claim.met(r.Attempt.Nonce)
	}
}

// mayBeOlder reports whether r is an earlier state than one seen, or may be: the
// record is gone, its token or its attempt is lower, or it has the attempt that
// was seen last, and other extensions.
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

// see notes a state that is believed. A state seen before goes on standing,
// whatever happened in between.
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
	v.any, v.record, v.news = true, r, true
	v.count++
	if r.Exists() {
		v.claim.met(r.Attempt.Nonce)
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

// extended reports whether another process has made r of s, by adding or changing
// an extension: a leader that is dead stays so. Without that, the same state
// under another version was restored, and another leader may have come and gone
// since.
func extended(r, s backends.Record) bool {
	if r.Extensions == s.Extensions || !r.Extensions.Names(s.Extensions) {
		return false
	}
	r.Version, r.Extensions = "", ""
	s.Version, s.Extensions = "", ""
	return r == s
}

// restored reports whether r is the state s, put back behind the holder's back.
func restored(r, s backends.Record) bool {
	return r.Attempt == s.Attempt && r.Version != s.Version && !extended(r, s)
}

// distrust counts the election as held for as long as the last leader seen may
// believe that it leads; or the one seen before it, whose record may be the
// newer one, made after a first one had vanished: its token is lower if it never
// saw that one, which may have been shown late; or another one with this TTL.
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

// chance returns the version last seen and the time from which it is claimable.
func (v *view) chance() (backends.Version, time.Duration) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.record.Version, v.claimable()
}

// try begins an acquisition that replaces r, in the same step in which it may,
// so that nothing that speaks against it is missed. It returns false if it may
// not. The token is that of the acquisition.
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
// seen. The time of day is only a floor, for the day that a record is deleted
// or rolled back, or a service moves to another store; wall is ignored when it
// cannot be right, which sane reports.
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

// believes reports whether nothing was seen since the first write of an
// acquisition that speaks against it, although the store has applied it: a
// record that did not exist when the write was sent, and not when it was
// applied, can have come and gone in between, and its holder may still lead.
// The record is then taken over like any other.
func (v *view) believes(next backends.Record) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.claim.state == trying && next.Token >= v.highest && v.held <= v.clock.Now().Mono
}

// mayRetry reports whether nothing that was seen since the first write of an
// acquisition speaks against another one. That prev still stands is not enough:
// the version of a record that does not exist is the one that comes back, when
// another candidate wins in between and its record vanishes.
func (v *view) mayRetry(prev, next backends.Record) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Attempt.Nonce == next.Attempt.Nonce {
		return true // applied, as something pushed has shown: read it back
	}
	return v.record.Version == prev.Version && v.claim.state == trying && next.Token > v.highest && v.claimable() <= v.clock.Now().Mono
}

// doubt notes that the outcome of a write of the latest acquisition is unknown.
func (v *view) doubt() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.claim.doubted = true
}

// abandon notes that the work done under an acquisition has stopped, or never
// began. It reports whether this Elector may now retake the record at once, and
// so may as well tell the store that it is vacant.
func (v *view) abandon(nonce string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.claim.abandon(nonce)
	return v.claim.free(nonce)
}

// standBack makes this candidate count the election as held for a while, after
// it was deposed: it would be the quickest to win it back. It does nothing if
// there is a successor already.
func (v *view) standBack(nonce string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Attempt.Nonce == nonce {
		v.distrust(0)
	}
}

// leader returns who leads, by a state just seen.
func (v *view) leader(r backends.Record) Leader {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	l := Leader{ID: r.Holder, Token: Token(r.Token), Value: r.Value, TTL: r.TTL}
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

// lapses is lapse, for those who wait for it.
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
		err.Reason = "its record has the extension " + name + ", which a newer version of this library wrote and this one does not know; upgrade this process"
	case err.Leader.ID == "":
		err.Reason = "its record names no leader, but has just changed, vanished or gone back, so that a leader seen before may still lead; or it deposed this very process, which stands back. It is free TTL*(1+ClockDrift) later"
	}
	return &failure{holding, err}
}

// takeNews returns the leader by the state last seen, if that was not traced.
func (v *view) takeNews() (Leader, bool) {
	v.mutex.Lock()
	news, r := v.news, v.record
	v.news = false
	v.mutex.Unlock()
	return v.leader(r), news
}

// A claim answers one question: if the store shows this Elector's latest
// acquisition, may it be believed, and may it be retaken when its work is over?
//
// Of the versions of a record only "there is none" comes back. So a creation
// that was on its way all the time can be applied after other records have come
// and gone, whose holder may still lead. It then shows an acquisition that this
// Elector had given up, or a lease that it had lost.
type claim struct {
	nonce   string
	creates bool // it replaces "there is no record"
	doubted bool // the outcome of one of its writes is unknown
	state   claimState
}

type claimState uint8

const (
	trying    claimState = iota // under way or held, and nothing speaks against it
	abandoned                   // its work has stopped, and nothing speaks against it
	contested                   // since its first write another acquisition was seen, or the record went back, vanished or was put back
)

// met notes whose acquisition a record shows.
func (c *claim) met(nonce string) {
	if nonce != c.nonce {
		c.contest()
	}
}

func (c *claim) contest() { c.state = contested }

// abandon notes that the acquisition is over. A creation in doubt stays as it
// is: it may be applied at any later time.
func (c *claim) abandon(nonce string) {
	if nonce == c.nonce && c.state == trying && !(c.creates && c.doubted) {
		c.state = abandoned
	}
}

// free reports whether a record that shows the acquisition may be retaken.
func (c *claim) free(nonce string) bool { return c.state == abandoned && nonce == c.nonce }
