package backends

import (
	"errors"
	"fmt"
)

// The errors that a backend wraps its client library's errors in. Their texts
// are for the person on call; what a backend adds says what to do.
var (
	// ErrConflict is a Swap's: the store holds another version.
	ErrConflict = errors.New("the store holds another version of the record")

	// ErrNotTried is the outcome of a renewal that was certainly not applied
	// because of others in its batch: see Batcher.
	ErrNotTried = errors.New("not applied because of another renewal in the same request")

	// ErrForeignRecord is content in the place of a record that is not a
	// valid one. Nobody touches it.
	ErrForeignRecord = errors.New("foreign record: not written by this library, or by a newer version of it; it is left untouched")

	// ErrDenied is a refusal that trying again will not change: a wrong
	// password, a missing permission.
	ErrDenied = errors.New("the store denied access")

	// ErrMisconfigured is a store that must be set up differently before it
	// can serve: a missing database, a table of another shape.
	ErrMisconfigured = errors.New("the store must be set up differently")

	// ErrReadOnly is a server that takes no writes now, a standby say. It may
	// pass with a failover.
	ErrReadOnly = errors.New("the store takes no writes")

	// ErrUnavailable is a store that gives no answer, or asks to come back
	// later. It may pass.
	ErrUnavailable = errors.New("the store is not available")

	// ErrDeposed: the holder's mark of presence is gone from the
	// store: see PresenceWatcher.
	ErrDeposed = errors.New("the holder's mark of presence is gone from the store: its session expired, or somebody removed it to depose the leader")

	// ErrURL is a URL that cannot be used as it is.
	ErrURL = errors.New("unusable store URL")

	// ErrUnknownScheme is a URL whose scheme no imported backend serves.
	ErrUnknownScheme = errors.New("unknown store URL scheme")

	// ErrName is a name that cannot name an election.
	ErrName = errors.New("unusable election name")
)

// Permanent reports whether trying again cannot help: somebody has to change
// the store, the record, the permissions or the configuration first.
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
