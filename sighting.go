package elector

import (
	"slices"
	"time"

	"github.com/elector-go/elector/backends"
)

// sighting is what this process has seen of an election's record, and decides
// when it may take over: guarantees 3 and 5. It survives from one try to the
// next, and is shared by all that reads the record. The Elector's mutex guards
// it.
type sighting struct {
	any    bool            // a read has succeeded
	record backends.Record // the latest state seen
	since  time.Duration   // monotonic, after the response that first showed it

	last    backends.Record // the latest state seen that was a record at all
	before  time.Duration   // TTL of the leader seen before, if it was not seen to resign
	held    time.Duration   // monotonic: nobody takes over before, see see
	highest uint64          // token
	count   uint64          // of states seen: tells what a read overlapped with

	trying    string   // nonce of our own last acquisition
	rival     bool     // since its first write another acquisition was seen
	abandoned []string // nonces of our own acquisitions that are over, with no other seen since
}

// goesBack reports whether r is an earlier state than one seen: the record is
// gone, or its token or its attempt is lower.
func (s *sighting) goesBack(r backends.Record) bool {
	if !r.Exists() {
		return s.record.Exists()
	}
	return r.Token < s.last.Token ||
		r.Attempt.Nonce == s.last.Attempt.Nonce && r.Attempt.Sequence < s.last.Attempt.Sequence
}

// see takes note of a state that a response showed; now is a monotonic time
// after that response. A state seen before goes on standing, whatever happened
// in between.
func (s *sighting) see(r backends.Record, now time.Duration, o *Options) {
	if s.any && r.Version == s.record.Version {
		return
	}
	// A record that vanished or went back tells nothing of who leads: the
	// leader that we saw last may know nothing of it yet.
	if s.last.Exists() && (!r.Exists() || r.Token < s.last.Token) {
		s.distrust(now, o)
	}
	s.any, s.record, s.since = true, r, now
	s.count++
	if r.Exists() {
		s.meet(r.Attempt.Nonce)
		if r.Attempt.Nonce != s.last.Attempt.Nonce {
			s.before = 0
			if !s.last.Vacant() {
				s.before = s.last.TTL
			}
		}
		s.last = r
		s.highest = max(s.highest, r.Token)
	}
}

// try takes note that an acquisition begins.
func (s *sighting) try(nonce string) { s.trying, s.rival = nonce, false }

// meet takes note of whose acquisition a record shows. After one of somebody
// else an abandoned one of ours tells nothing any more if it comes back: as a
// creation that was on its way all the time, and could be applied because the
// other record was gone. Whoever held that may still lead.
func (s *sighting) meet(nonce string) {
	if nonce != s.trying && !slices.Contains(s.abandoned, nonce) {
		s.rival, s.abandoned = true, nil
	}
}

// distrust counts the election as held for as long as the last leader seen may
// believe that it leads; or the one seen before it, whose record may be the
// newer one, made after a first one had vanished: its token is lower if it never
// saw that one, which may have been shown late.
func (s *sighting) distrust(now time.Duration, o *Options) {
	if s.last.Exists() {
		s.held = max(s.held, now+o.challenge(max(s.last.TTL, s.before)))
	}
}

// claimable returns the monotonic time from which the record, as it was last
// seen and if it does not change, may be taken over.
func (s *sighting) claimable(o *Options) time.Duration {
	if s.record.Vacant() || slices.Contains(s.abandoned, s.record.Attempt.Nonce) {
		return s.held
	}
	return max(s.held, s.since+o.challenge(s.record.TTL))
}

// abandon takes note that an acquisition of ours is over: its worker has
// returned or never started. If the store shows it, nobody leads, unless
// another one was seen meanwhile: see meet. Only the last one can be abandoned:
// of those before it that was said at its time.
func (s *sighting) abandon(nonce string) {
	if nonce != s.trying || s.rival || slices.Contains(s.abandoned, nonce) {
		return
	}
	const most = 16 // more cannot be on their way to the store at a time
	if len(s.abandoned) == most {
		s.abandoned = slices.Delete(s.abandoned, 0, 1)
	}
	s.abandoned = append(s.abandoned, nonce)
}

// nextToken returns the token of an acquisition that replaces the record last
// seen. The time of day is only a floor, for the day that a record is deleted
// or rolled back, or a service moves to another store; wall is ignored when it
// cannot be right, and sane says so.
func (s *sighting) nextToken(wall time.Duration, o *Options) (token uint64, sane bool, err error) {
	token = max(s.highest+1, s.record.Token+1, uint64(o.MinToken), 1)
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
