// Package store makes the requests of one process to a backend. It bounds how many are
// under way, decides which go first, and joins those that go at about the same time, where
// the backend takes several in one: swaps through a backends.BatchSwapper, reads through a
// backends.BatchLoader. It knows nothing of elections: what a swap means, and when to make
// one, is its callers' business.
//
// All requests through one backend share one room, its handle. A request waits there until
// it has a place on the wire; what waits is not on the way to anywhere: its timeout begins,
// and a swap is built, when it is sent. So a process with too little processor, or a store
// that is slow, makes fewer and larger requests, and what it can do it does for those that
// need it most.
//
// A request waits for others only if there are any. One that may wait, such as a renewal,
// waits a moment if there are other members that make such requests. Any other waits only
// while a request is on its way, so a single caller is never slower than without this
// package. A refusal of one does not affect the others. A request that was sent takes no
// more company: what it shows, or when it was sent, would not be true of one that came
// later.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Rank says which requests go first.
type Rank uint8

const (
	Keep Rank = iota // renewals, and reads that must know what became of one
	Gain             // acquisitions and releases
	Seek             // reads of campaigns
	Look             // all others, which may fail where there is no room
	ranks
)

const (
	swapWait = 2 * time.Millisecond // the longest that a swap waits for others
	readWait = 3 * time.Millisecond // the same for a read

	// lanes is how many requests of a kind may be on their way before those that wait are
	// held back, so that a store that is slow gets few full requests and not many small ones.
	lanes = 2

	// longestHold bounds for how long they are held back.
	longestHold = 50 * time.Millisecond

	// wires is the most requests of a kind on their way where each may carry many, and
	// plainWires where each carries one. Keep may have all, and each further rank a quarter
	// fewer.
	wires      = 8
	plainWires = 64

	// mostHung bounds, for each client and rank, the requests that a backend does not return
	// from although their contexts have ended.
	mostHung = 16

	// lastWord is how long, at most, a backend has to say why there was no answer in time.
	lastWord = 10 * time.Millisecond

	// longestGrace is for how long, at most, a request whose time is over keeps its place.
	longestGrace = time.Second

	// maxBytes bounds the texts (IDs, values and extensions, before and after) of the
	// records that are swapped in one request: stores take requests of a megabyte, and a
	// byte may take six bytes in JSON.
	maxBytes = 128 << 10
)

// share returns the part of most that a rank may have.
func (r Rank) share(most int) int { return most * int(ranks-r) / int(ranks) }

// An Ask says how to make a request.
type Ask struct {
	Rank    Rank
	Gather  bool          // it may wait a moment for those of others
	Alone   bool          // it goes by itself
	Timeout time.Duration // from when it is sent

	// Of Keep: when the lease is over, and from when it goes before acquisitions, monotonic.
	Over, Urgent time.Duration
}

var (
	errLate    = fmt.Errorf("%w: its time was over before it could be sent", backends.ErrNotTried)
	errGoexit  = fmt.Errorf("%w: it ended its goroutine", backends.ErrUnavailable)
	errAnother = fmt.Errorf("%w: the backend answered with another write in the place of this one", backends.ErrUnavailable)
	errHang    = fmt.Errorf("%w: too many requests hang and ignore their timeouts", backends.ErrUnavailable)
)

// notTried reports whether a request was certainly not made. An error that is
// another one too may be about another try.
func notTried(err error) bool {
	for _, other := range []error{backends.ErrConflict, backends.ErrDeposed, backends.ErrReadOnly, backends.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return errors.Is(err, backends.ErrNotTried)
}

// answered reports whether an error is the store's answer to one request.
func answered(err error) bool {
	return err == nil || errors.Is(err, backends.ErrConflict) || errors.Is(err, backends.ErrDeposed)
}
