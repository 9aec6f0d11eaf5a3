package rule

import (
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A View holds what this process has seen of an election's record. It survives from one
// attempt to lead to the next. Every state of a record enters by Read, Pushed or Wrote.
// Many goroutines may call its methods.
type View struct {
	Drift float64 // the largest error of the clock's rate, as a fraction

	// SameWrite reports whether two versions certainly show one and the same write: see
	// backends.SameWriter. It may be nil.
	SameWrite func(before, after backends.Version) bool

	// Report gets each step, for tests. It may be nil. It must not call the View.
	Report func(Step)

	mutex    sync.Mutex
	any      bool            // a state was seen
	record   backends.Record // the latest state seen
	since    time.Duration   // after the response that first showed its attempt
	followed bool            // see Snapshot
	number   uint64          // of states seen
	appeared uint64          // number of the state that showed a record after none

	last    backends.Record // the latest state seen that was a record at all
	before  time.Duration   // TTL of the leader before that, unless it was seen to resign
	held    time.Duration   // no takeover before, see distrust
	highest uint64          // token
	claim   claim           // of this process's latest acquisition
}

// A Snapshot is what a View shows at one moment.
type Snapshot struct {
	Any      bool            // a state was seen
	Record   backends.Record // the latest state seen
	Since    time.Duration   // after the response that first showed its attempt
	Number   uint64          // of states seen so far
	Own      bool            // the record shows this process's latest acquisition
	Term     string          // nonce of the latest acquisition seen
	Followed bool            // the record, if vacant, is the end of a term that was seen

	// Free is the time from which the record, if its attempt does not change, may be
	// taken over. It is the challenger rule.
	Free time.Duration

	// Distrusted is the time until which a leader that was seen before the record may
	// still lead.
	Distrusted time.Duration

	// Lapse is the time at which the lease that the record shows is over.
	Lapse time.Duration
}

// Snapshot returns what was seen last.
func (v *View) Snapshot() Snapshot {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	s := Snapshot{Any: v.any, Record: v.record, Since: v.since, Number: v.number, Term: v.last.Attempt.Nonce, Followed: v.followed,
		Own: v.record.Exists() && v.record.Attempt.Nonce == v.claim.nonce, Free: v.free(), Distrusted: v.held, Lapse: Never}
	if Critical(v.record) == "" {
		s.Lapse = v.since + Challenge(v.record.TTL, v.Drift)
	}
	return s
}

// free is Snapshot.Free.
func (v *View) free() time.Duration {
	switch {
	case Critical(v.record) != "":
		return Never
	case v.record.Vacant(), v.claim.over(v.record.Attempt.Nonce):
		return v.held
	}
	return max(v.held, v.since+Challenge(v.record.TTL, v.Drift))
}

// Mark returns the number of states seen so far, for Read.
func (v *View) Mark() uint64 {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.number
}

// Read enters a state that a read has shown. It returns false, and ignores the state,
// if that may be older than one seen and something else was seen since mark: the answer
// may be late, and only another read shows whether the record really went back. But a
// record that was there at mark, and then was not, has vanished, although it may be back.
func (v *View) Read(r backends.Record, mark uint64, now time.Duration) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.mayBeOlder(r) && v.number != mark {
		v.report(Step{Name: "see", Record: r, Now: now})
		if !r.Exists() && v.appeared <= mark {
			v.distrust(0, now)
		}
		v.doubtCreation(r)
		return false
	}
	v.see(r, now)
	return true
}

// Wrote enters the state that this process's own acknowledged write has made from prev.
// Nothing can stand between the two.
func (v *View) Wrote(prev, r backends.Record, now time.Duration) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.any && prev.Exists() && prev.Version == v.record.Version {
		v.see(r, now)
		return
	}
	v.push(r, now)
}

// Pushed enters a state that the store has pushed. Such a state may have been
// overtaken: Pushed returns false if it may be older than one seen, and only a read can
// settle that. (If the record did go back, and changes again before that read, only the
// later change is seen: a store that loses a write and shows another state at once is
// outside of what we promise.)
//
// Two things about an older state count all the same. A record that vanished has
// vanished, although it may be back. And where there was no record, one with a lower
// token may be a winner's, and may be gone before it is read: it counts as seen, and as
// vanished.
func (v *View) Pushed(r backends.Record, now time.Duration) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.push(r, now)
}

func (v *View) push(r backends.Record, now time.Duration) bool {
	if !v.mayBeOlder(r) {
		v.see(r, now)
		return true
	}
	v.report(Step{Name: "see", Record: r, Now: now})
	switch {
	case !r.Exists():
		v.distrust(0, now)
	case !v.record.Exists() && r.Attempt.Nonce != v.last.Attempt.Nonce:
		v.claim.met(r.Attempt.Nonce)
		if !r.Vacant() {
			v.distrust(r.TTL, now)
		}
	default:
		v.doubtCreation(r)
	}
	return false
}

// doubtCreation records that an older state was shown but not believed: its record may
// have come and gone while a creation of this process was on its way.
func (v *View) doubtCreation(r backends.Record) {
	if v.claim.creates && r.Exists() {
		v.claim.met(r.Attempt.Nonce)
	}
}

// mayBeOlder reports whether r may be an earlier state than one seen: the record is
// gone, its token or its attempt is lower, or it has the attempt that was seen last
// under another version. With more extensions than that it is newer: processes that write
// into the record of another one remove none.
func (v *View) mayBeOlder(r backends.Record) bool {
	if !r.Exists() {
		return v.record.Exists()
	}
	if r.Attempt == v.record.Attempt && r.Version != v.record.Version {
		return !v.amended(r, v.record) || v.record.Extensions.Names(r.Extensions)
	}
	return r.Token < v.last.Token || v.earlier(r)
}

// earlier reports whether r is an earlier state of the acquisition seen last.
func (v *View) earlier(r backends.Record) bool {
	return r.Attempt.Nonce == v.last.Attempt.Nonce && r.Attempt.Sequence < v.last.Attempt.Sequence
}

// see enters a state that is believed. A state that is shown again has stood all the
// time, whatever happened in between.
func (v *View) see(r backends.Record, now time.Duration) {
	v.report(Step{Name: "see", Record: r, Now: now, Taken: true})
	if v.any && r.Version == v.record.Version {
		return
	}
	// A missing or older record is no evidence of who leads: the leader seen last may
	// not know of it yet.
	if v.last.Exists() && (!r.Exists() || r.Token < v.last.Token) {
		v.distrust(0, now)
	}
	if r.Exists() && v.earlier(r) {
		v.claim.contest()
	}
	if !v.any || !v.amended(r, v.record) {
		v.since = now
	}
	v.followed = v.record.Exists() && (!v.record.Vacant() || v.followed && r.Attempt == v.record.Attempt)
	v.number++
	if r.Exists() && !v.record.Exists() {
		v.appeared = v.number
	}
	v.any, v.record = true, r
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

// amended reports whether r is s, which another process has changed since without
// touching the holder's write: it has added or changed an extension, or the store
// certainly shows the same write under another version. Neither is a sign of life of
// the leader.
func (v *View) amended(r, s backends.Record) bool {
	same := v.SameWrite != nil && v.SameWrite(s.Version, r.Version)
	added := r.Extensions != s.Extensions && r.Extensions.Names(s.Extensions)
	if added {
		r.Extensions, s.Extensions = "", ""
	}
	r.Version, s.Version = "", ""
	return (added || same) && r == s
}

// distrust counts the election as held for as long as any of these may believe that it
// leads: the last leader seen; the leader seen before it; and a leader with this TTL.
//
// The leader seen before may be the newer one. The last one's record had vanished, the
// other was created without having seen it, so with a lower token, and the last one was
// shown late.
func (v *View) distrust(ttl, now time.Duration) {
	if v.last.Exists() {
		v.held = max(v.held, now+Challenge(max(v.last.TTL, v.before, ttl), v.Drift))
	}
	v.claim.contest()
}

// Claim begins an acquisition that replaces r, with a nonce of its own. It checks that
// the acquisition is allowed in the same step, so that no state is missed that speaks
// against it, and returns its token. If the record is not free, Claim returns false; if
// there is no greater token, the token is 0 and nothing has begun.
func (v *View) Claim(r backends.Record, nonce string, min uint64, now, wall time.Duration) (token uint64, free bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.free() > now || v.record.Version != r.Version {
		return 0, false
	}
	if token = Token(max(v.highest, v.record.Token), min, wall); token != 0 {
		v.claim = v.claim.next(nonce, !r.Exists())
		v.report(Step{Name: "begin", Nonce: nonce, Record: r, Token: token, Now: now, Taken: true})
	}
	return token, true
}

// Believes reports whether no state seen since the first write of an acquisition speaks
// against it. Although the store has applied the acquisition, a record may have come and
// gone between the write and its application, and the holder of that record may still
// lead. The acquisition's record is then taken over like any other.
func (v *View) Believes(won backends.Record, now time.Duration) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	believed := v.claim.believed() && won.Token >= v.highest && v.held <= now
	v.report(Step{Name: "believe", Nonce: won.Attempt.Nonce, Record: won, Token: won.Token, Now: now, Taken: believed})
	return believed
}

// MayRetry reports whether no state seen since an acquisition began speaks against a write of
// it. It is not enough that prev still stands: the version of a
// missing record comes back, when another candidate wins in between and its record
// vanishes.
func (v *View) MayRetry(prev backends.Record, nonce string, token uint64, now time.Duration) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	may := v.record.Attempt.Nonce == nonce || // a push has shown that it was applied: read it back
		v.record.Version == prev.Version && v.claim.nonce == nonce && v.claim.believed() && token > v.highest && v.free() <= now
	v.report(Step{Name: "repeat", Nonce: nonce, Record: prev, Token: token, Now: now, Taken: may})
	return may
}

// Doubt records that the outcome of a write of the latest acquisition is unknown.
func (v *View) Doubt() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.claim.doubt()
	v.report(Step{Name: "doubt", Nonce: v.claim.nonce, Taken: true})
}

// Over records that an acquisition is over: its work has stopped, or never began. It reports
// whether this process may take the record at once from now on. It may not while the
// acquisition is a creation whose outcome is unknown, or after a state that speaks against it.
func (v *View) Over(nonce string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.claim.end(nonce)
	is := v.claim.over(nonce)
	v.report(Step{Name: "over", Nonce: nonce, Taken: is})
	return is
}
