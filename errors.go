package elector

import (
	"errors"
	"fmt"

	"github.com/elector-go/elector/backends"
)

// notLeader is an error that is also ErrNotLeader to errors.Is.
type notLeader string

func (e notLeader) Error() string        { return string(e) }
func (e notLeader) Is(target error) bool { return target == ErrNotLeader }

// The errors of this package, to be asked for with [errors.Is]. What is
// returned wraps them together with the store's own error, in an *Error.
var (
	// ErrNotLeader: this process does not hold the election. ErrLost and
	// ErrResigned are ErrNotLeader too.
	ErrNotLeader = errors.New("not the leader")
	// ErrLost: the lease ended against our will: it could not be renewed in
	// time, somebody else holds the election, or the record is gone.
	ErrLost error = notLeader("the lease is lost")
	// ErrResigned: the lease ended because this process gave it up.
	ErrResigned error = notLeader("the lease was resigned")
	// ErrHeld: somebody else holds the election. See HeldError.
	ErrHeld = errors.New("the election is held")
	// ErrBusy: this Elector leads already, or another call of Campaign,
	// TryCampaign or Run on it is under way.
	ErrBusy = errors.New("this Elector already leads or campaigns; make another one for a second candidate")
	// ErrUnhealthy: Options.Healthy said no, so this process does not
	// campaign, or has resigned.
	ErrUnhealthy = errors.New("the candidate is not healthy")
	// ErrClosed: the Elector has been closed.
	ErrClosed = errors.New("the Elector is closed")
	// ErrStale: a fencing token is lower than one already seen.
	ErrStale = errors.New("stale fencing token")
	// ErrTokenRegressed: the record shows a lower token than before, or an
	// older state: the store lost writes, or somebody restored a backup.
	ErrTokenRegressed = errors.New("the fencing token went backwards; was the store restored from a backup?")
	// ErrTokenExhausted: there is no higher token.
	ErrTokenExhausted = errors.New("the record holds the largest fencing token; once no leader is left and no resource remembers its token, delete the record")
	// ErrInvalid: an option, value or token that cannot be used.
	ErrInvalid = errors.New("invalid")

	// The errors of the driver boundary, see package backends.
	ErrForeignRecord = backends.ErrForeignRecord
	ErrDeposed       = backends.ErrDeposed // of a lease, with ErrLost
	ErrDenied        = backends.ErrDenied
	ErrMisconfigured = backends.ErrMisconfigured
	ErrReadOnly      = backends.ErrReadOnly
	ErrUnavailable   = backends.ErrUnavailable
	ErrURL           = backends.ErrURL
	ErrUnknownScheme = backends.ErrUnknownScheme
	ErrName          = backends.ErrName
)

// An Error says which election in which store an error is about.
type Error struct {
	Op       string // what was tried: "campaign", "renew", …
	Election string
	Store    string // without a password
	Err      error
}

// Error implements error.
func (e *Error) Error() string {
	where := ""
	if e.Store != "" {
		where = " on " + e.Store
	}
	return fmt.Sprintf("elector: %s %q%s: %v", e.Op, e.Election, where, e.Err)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// A HeldError is the ErrHeld that TryCampaign returns.
type HeldError struct {
	Leader Leader // who holds the election, as recorded
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Leader.ID == "" {
		return ErrHeld.Error() + " by nobody that the record names: it has just changed, or vanished or went back, and then whoever held it may still lead; or it deposed this very process, which stands back"
	}
	return fmt.Sprintf("%v by %q with token %d", ErrHeld, e.Leader.ID, e.Leader.Token)
}

// Is makes a HeldError an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
