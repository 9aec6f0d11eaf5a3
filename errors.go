package elector

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/operate"
)

// notLeader is an error that is also ErrNotLeader to errors.Is.
type notLeader string

func (e notLeader) Error() string        { return string(e) }
func (e notLeader) Is(target error) bool { return target == ErrNotLeader }

// The errors of this package; test for them with [errors.Is]. A returned error is
// an *Error that wraps one of them, together with the store's own error.
var (
	// ErrNotLeader: this process does not hold the election. ErrLost and
	// ErrResigned are ErrNotLeader too.
	ErrNotLeader = errors.New("not the leader")
	// ErrLost: the lease ended although this process did not give it up: it
	// could not be renewed in time, another candidate holds the election, or the
	// record is gone.
	ErrLost error = notLeader("the lease is lost")
	// ErrResigned: the lease ended because this process gave it up.
	ErrResigned error = notLeader("the lease was resigned")
	// ErrHeld: another candidate holds the election. See HeldError.
	ErrHeld = errors.New("the election is held")
	// ErrPaused: the election is paused, see operate.Operator. A HeldError is ErrPaused too
	// if that is why it cannot be claimed.
	ErrPaused = errors.New("the election is paused")
	// ErrBusy: this Elector already leads, or another call of Campaign,
	// TryCampaign or Run on it is under way.
	ErrBusy = errors.New("this Elector already leads or campaigns; make another one for a second candidate")
	// ErrRequested: another process has requested the resignation, see
	// RequestResign.
	ErrRequested = errors.New("another process has requested the resignation")
	// ErrUnhealthy: Options.Healthy returned an error, so this process does
	// not campaign or has resigned.
	ErrUnhealthy = errors.New("the candidate is not healthy")
	// ErrClosed: the Elector has been closed.
	ErrClosed = errors.New("the Elector is closed")
	// ErrStale: the fencing token is lower than one that was seen before.
	ErrStale = backends.ErrStale
	// ErrTokenRegressed: the record has a lower token than before, or an older
	// state: the store lost writes, or was restored from a backup.
	ErrTokenRegressed = errors.New("the fencing token went backwards; was the store restored from a backup?")
	// ErrTokenExhausted: there is no higher token.
	ErrTokenExhausted = errors.New("the record holds the largest fencing token; once no leader is left and no resource remembers its token, delete the record")
	// ErrInvalid: an argument, option, value or token that cannot be used.
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

// An Error adds the election and the store to an error.
type Error struct {
	Op       string // what failed: "campaign", "renew", …
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
	Reason string // why a record that names no leader cannot be claimed
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Leader.Pause != nil {
		return fmt.Sprintf("%v %v", ErrPaused, *e.Leader.Pause)
	}
	if e.Leader.ID != "" && e.Reason == "" {
		return fmt.Sprintf("%v by %q with token %d", ErrHeld, e.Leader.ID, e.Leader.Token)
	}
	return ErrHeld.Error() + ": " + e.Reason
}

// Is makes a HeldError an ErrHeld, and an ErrPaused if the election is paused.
func (e *HeldError) Is(target error) bool {
	return target == ErrHeld || target == ErrPaused && e.Leader.Pause != nil
}

// Everything below decides what an error means. It is decided in this file alone,
// and only for what a backend returned, before anything is joined to it: errors
// of users, and causes of their contexts, decide nothing.

// A kind is what a failure means for the election.
type kind uint8

const (
	transient    kind = iota // it may pass; the outcome of a write is unknown
	cancelled                // the same: the caller's context has ended
	conflicting              // not applied: the store holds another version
	untried                  // not applied, because of another renewal in its batch
	presenceLost             // not applied: the holder's mark of presence is gone
	foreign                  // the record is foreign
	refused                  // the store refuses, until somebody changes it
	hopeless                 // trying again cannot help
	holding                  // another candidate holds the election
	notHealthy               // Options.Healthy returned an error
)

// permanent reports whether a failure of the kind passes only if somebody changes
// something. Whether it ends a campaign: see Elector.ends.
func (k kind) permanent() bool { return k >= foreign && k <= hopeless }

// A failure is why something did not succeed: its kind, and the error to show. A
// nil failure is a success.
type failure struct {
	kind kind
	err  error
}

// shown returns the error, nil for a success.
func (f *failure) shown() error {
	if f == nil {
		return nil
	}
	return f.err
}

// result is the failure as the Result of RequestInfo.
func (f *failure) result() string {
	switch {
	case f == nil:
		return "ok"
	case f.kind == conflicting:
		return "conflict"
	case f.kind == cancelled:
		return "cancelled"
	}
	return "error"
}

// permanent reports whether the failure is permanent.
func (f *failure) permanent() bool { return f != nil && f.kind.permanent() }

// ends reports whether a failure ends a campaign. What a store refuses does so until an
// attempt of this Elector has ended with a lease or with ErrHeld. From then on it is tried
// again: what has worked may work again, and a person would start this process anew.
func (e *Elector) ends(f *failure) bool {
	return f.permanent() && (f.kind == hopeless || !e.answered.Load())
}

// endsRelease reports whether a release must not, or need not, be tried again. What the store
// refuses may be allowed before the record expires.
func (f *failure) endsRelease() bool { return f.permanent() && f.kind != refused }

// kinds are what the errors of the boundary mean.
var kinds = []struct {
	err  error
	kind kind
}{
	{backends.ErrConflict, conflicting},
	{backends.ErrNotTried, untried},
	{backends.ErrDeposed, presenceLost},
	{backends.ErrForeignRecord, foreign},
	{backends.ErrDenied, refused},
	{backends.ErrMisconfigured, refused},
	{backends.ErrURL, hopeless},
	{backends.ErrUnknownScheme, hopeless},
	{backends.ErrName, hopeless},
	{backends.ErrReadOnly, transient},
	{backends.ErrUnavailable, transient},
	{context.Canceled, transient},
	{context.DeadlineExceeded, transient},
}

// kindOf returns the kind of an error that a backend returned. An error that
// claims that a write was not applied counts only if it stands alone: joined to
// another one it may be about another try.
func kindOf(err error) kind {
	found, matches := transient, 0
	for _, k := range kinds {
		if !errors.Is(err, k.err) {
			continue
		}
		matches++
		if k.kind.permanent() || matches == 1 {
			found = k.kind
		}
	}
	if matches > 1 && !found.permanent() {
		return transient
	}
	return found
}

// A usersError is an error of a user's function, or the cause of a user's
// context. It unwraps to what it wraps, except to errors of this package: the end
// of another lease must not pass for the end of this one.
type usersError struct{ err error }

func (e usersError) Error() string { return e.err.Error() }

// Is implements the interface of errors.Is.
func (e usersError) Is(target error) bool {
	for _, own := range []error{ErrNotLeader, ErrLost, ErrResigned, ErrHeld, ErrPaused, operate.ErrNotPaused, ErrBusy, ErrRequested, ErrUnhealthy, ErrClosed, ErrStale, ErrTokenRegressed, ErrTokenExhausted, ErrInvalid} {
		if target == own {
			return false
		}
	}
	for _, k := range kinds[:len(kinds)-2] { // all but those of contexts
		if target == k.err {
			return false
		}
	}
	return errors.Is(e.err, target)
}

// As implements the interface of errors.As.
func (e usersError) As(target any) bool {
	switch target.(type) {
	case **Error, **HeldError:
		return false
	}
	return errors.As(e.err, target)
}

// fail adds the election and the store to an error, once. It returns nil for nil.
func (e *Elector) fail(op string, err error) error {
	var named *Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &Error{op, e.name, e.store, err}
}

// ended returns why a call's context has ended: ErrClosed after Close, otherwise
// the cause; and the failure that the call has waited out so far.
func (e *Elector) ended(ctx context.Context, last *failure) error {
	err := ErrClosed
	if e.life.Err() == nil {
		err = usersError{context.Cause(ctx)}
	}
	if last == nil || last.kind == cancelled {
		return err
	}
	return fmt.Errorf("%w; until then: %w", err, last.err)
}

// noLeader reports whether a request to resign found no living leader.
func noLeader(err error) bool { return errors.Is(err, ErrNotLeader) }

// requestedBefore reports whether a valid request to resign cannot name the candidate that
// it wants: another one is pending, or a candidate with the same ID leads.
func requestedBefore(err error) bool {
	return errors.Is(err, ErrRequested) || errors.Is(err, ErrInvalid)
}

// unhealthyError reports whether an error is of Options.Healthy, and not of the store.
func unhealthyError(err error) bool { return errors.Is(err, ErrUnhealthy) }

// reasonOf is equal for two errors of one outage that are logged once. A store that does
// not answer says so in many wordings; of other errors the text counts, without the
// election's name and what differs from request to request.
func reasonOf(err error, name string) string {
	if errors.Is(err, ErrUnavailable) && !unhealthyError(err) {
		return ErrUnavailable.Error()
	}
	return aside.Reason(strings.ReplaceAll(err.Error(), name, ""))
}

// ending returns how a lease that is over ended.
func (s *status) ending() annex.Reason {
	switch {
	case s.phase == deposed:
		return annex.Deposed
	case s.phase == lost, s.phase == overran:
		return annex.Lost
	case errors.Is(s.cause, ErrUnhealthy):
		return annex.Unhealthy
	}
	return annex.Resigned
}

// toldToStop reports whether a context was cancelled, and not ended by a
// deadline.
func toldToStop(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
