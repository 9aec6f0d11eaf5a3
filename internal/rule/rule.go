// Package rule decides who may lead an election: what a process may conclude from what
// it has seen of the election's record. It knows nothing of who should lead, makes no
// requests and reads no clock: states and readings of the clock are passed in.
//
// All times are readings of this machine's monotonic clock. No rule compares the clocks
// of two machines.
//
//   - The holder rule: a lease is valid for Hold of its TTL, counted from before its last
//     acknowledged write was sent.
//   - The challenger rule: a record may be taken over once its attempt has stood unchanged
//     for Challenge of the TTL in it: see [View.Snapshot] and [Snapshot.Free].
//   - A record that vanished or went back is no evidence that its leader is gone: it counts
//     as held for as long as that leader may believe: see View.distrust.
//   - The token of an acquisition is greater than all that were seen: see [Token].
//   - What a writer may believe of its own acquisition: see claim.
//
// spec/election.pml has the same rules under the same names.
package rule

import (
	"math"
	"time"

	"github.com/elector-go/elector/backends"
)

// Hold is H: how long a holder trusts its lease. A holder whose clock runs slow by the
// drift still ends the lease within the TTL.
func Hold(ttl time.Duration, drift float64) time.Duration {
	return ttl - time.Duration(float64(ttl)*drift)
}

// Challenge is C: how long a record with this TTL must have stood unchanged before a
// challenger may take over. A challenger whose clock runs fast by the drift has still
// waited for the TTL.
func Challenge(ttl time.Duration, drift float64) time.Duration {
	return ttl + time.Duration(float64(ttl)*drift)
}

// Never is a time that does not come.
const Never = time.Duration(math.MaxInt64)

// Known are the critical extensions that this version understands: see
// backends.Extensions. A pause only says who should lead: no candidate.
var Known = []string{"c_pause"}

// Critical returns the name of a critical extension that this version does not know. A
// record that has one is neither taken over nor written.
func Critical(r backends.Record) string { return r.Extensions.Critical(Known...) }

// Token returns the token of an acquisition: greater than the highest that was seen, and
// at least min. The time of day is only a floor, for the day when a record is deleted or
// rolled back, or a service moves to another store; a wall that is not Plausible is
// ignored. Token returns 0 if there is no greater token.
func Token(highest, min uint64, wall time.Duration) uint64 {
	token := max(highest+1, min, 1)
	if Plausible(wall) {
		token = max(token, uint64(wall/time.Microsecond))
	}
	if token > backends.MaxToken {
		return 0
	}
	return token
}

// Plausible reports whether a time of day, since 1970, can be right: whether it is
// between 2020 and 2200.
func Plausible(wall time.Duration) bool { return wall > since2020 && wall < until2200 }

var (
	since2020 = time.Duration(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	until2200 = time.Duration(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
)
