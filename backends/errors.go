package backends

import (
	"errors"
	"fmt"
)

// The errors in which a backend wraps those of its client library. Their texts
// are for the person on call; the backend adds what to do.
var (
	// ErrConflict is the error of a Swap that found another version.
	ErrConflict = errors.New("the store holds another version of the record")

	// ErrNotTried is the Outcome of a swap that was certainly not applied, or
	// a read that was not made, because it was in one request with others: see
	// BatchSwapper and BatchLoader.
	ErrNotTried = errors.New("not tried together with others in one request")

	// ErrForeignRecord is the error for content that is no valid record. No
	// process touches it.
	ErrForeignRecord = errors.New("foreign record: not written by this library, or by a newer version of it; it is left untouched")

	// ErrDenied is a refusal that a further try will not change: a wrong
	// password, a missing permission.
	ErrDenied = errors.New("the store denied access")

	// ErrMisconfigured is the error of a store that must be set up differently
	// before it can serve: a missing database, a table with other columns.
	ErrMisconfigured = errors.New("the store must be set up differently")

	// ErrReadOnly is the error of a server that takes no writes now, such as a
	// standby. It may pass with a failover. A handle that was opened for reading alone
	// takes none either: see OpenReadOnly.
	ErrReadOnly = errors.New("the store takes no writes")

	// ErrUnavailable is the error of a store that does not answer, or asks to
	// try later. It may pass.
	ErrUnavailable = errors.New("the store is not available")

	// ErrDeposed: the holder's mark of presence is gone from the store, see
	// PresenceWatcher.
	ErrDeposed = errors.New("the holder's mark of presence is gone from the store: its session expired, or an operator removed it to depose the leader")

	// ErrStale is the error of a guarded write whose lease was followed by
	// another acquisition, or resigned.
	ErrStale = errors.New("stale fencing token")

	// ErrURL is the error for a URL that cannot be used.
	ErrURL = errors.New("unusable store URL")

	// ErrOptions is the error of a backend's New for a client or for options that it
	// cannot use. Its text names the field.
	ErrOptions = errors.New("unusable options")

	// ErrUnknownScheme is the error for a URL whose scheme no imported backend
	// serves.
	ErrUnknownScheme = errors.New("unknown store URL scheme")

	// ErrName is the error for a name that no election may have.
	ErrName = errors.New("unusable election name")
)

var errReadOnlyHandle = fmt.Errorf("%w: this handle was opened for reading alone; open the store without readonly=true", ErrReadOnly)

// Permanent reports whether trying again cannot help until the store, the record,
// the permissions or the configuration are changed.
func Permanent(err error) bool {
	for _, target := range []error{ErrForeignRecord, ErrDenied, ErrMisconfigured, ErrURL, ErrUnknownScheme, ErrName} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// Foreign returns ErrForeignRecord with the reason.
func Foreign(format string, args ...any) error {
	return fmt.Errorf("%w (%s)", ErrForeignRecord, fmt.Sprintf(format, args...))
}

func nameError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrName, fmt.Sprintf(format, args...))
}
