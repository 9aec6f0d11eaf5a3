package partition

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Errors are told apart here alone. None of this decides who may own a partition.

var errNilContext = fmt.Errorf("%w: the context is nil", elector.ErrInvalid)

// ends reports whether an error ends what this process does in the group. What the store
// refuses does so until that has worked once: see elector.Elector.Campaign.
func ends(err error, worked bool) bool {
	return isHopeless(err) || isRefusal(err) && !worked
}

// isHopeless reports whether trying again cannot help.
func isHopeless(err error) bool {
	for _, target := range []error{elector.ErrInvalid, elector.ErrClosed, elector.ErrTokenExhausted, elector.ErrURL, elector.ErrUnknownScheme, elector.ErrName} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// isRefusal reports whether trying again helps once somebody has changed something.
func isRefusal(err error) bool { return backends.Permanent(err) && !isHopeless(err) }

// levelOf returns the level at which an error is logged that is tried again.
func levelOf(err error) slog.Level {
	if isRefusal(err) {
		return slog.LevelError
	}
	return slog.LevelWarn
}

// isForeign reports whether a read has worked, and has shown what is no record of this
// library.
func isForeign(err error) bool { return errors.Is(err, elector.ErrForeignRecord) }

// isHeld reports whether another process holds a seat.
func isHeld(err error) bool { return errors.Is(err, elector.ErrHeld) }

// isRefused reports whether a swap was certainly not applied, because the record has
// another version.
func isRefused(err error) bool { return errors.Is(err, backends.ErrConflict) }
