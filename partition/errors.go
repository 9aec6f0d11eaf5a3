package partition

import (
	"errors"
	"fmt"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Errors are told apart here alone. None of this decides who may own a partition.

var errNilContext = fmt.Errorf("%w: the context is nil", elector.ErrInvalid)

// isPermanent reports whether trying again cannot help.
func isPermanent(err error) bool {
	return backends.Permanent(err) || errors.Is(err, elector.ErrInvalid) || isForeign(err) || errors.Is(err, elector.ErrClosed) || errors.Is(err, elector.ErrTokenExhausted)
}

// isForeign reports whether a read has worked, and has shown what is no record of this
// library.
func isForeign(err error) bool { return errors.Is(err, elector.ErrForeignRecord) }

// isHeld reports whether another process holds a seat.
func isHeld(err error) bool { return errors.Is(err, elector.ErrHeld) }

// isRefused reports whether a swap was certainly not applied, because the record has
// another version.
func isRefused(err error) bool { return errors.Is(err, backends.ErrConflict) }
