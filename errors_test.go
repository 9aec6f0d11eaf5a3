package elector

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/elector-go/elector/backends"
)

// Only where it stands alone does an error mean that a write was not applied.
func TestKindOf(t *testing.T) {
	driver := errors.New("the driver's own")
	for name, c := range map[string]struct {
		err  error
		want kind
	}{
		"unknown":           {driver, passing},
		"conflict":          {fmt.Errorf("%w: %w", backends.ErrConflict, driver), conflicting},
		"not tried":         {fmt.Errorf("%w: %w", backends.ErrNotTried, driver), untried},
		"deposed":           {backends.ErrDeposed, unmarked},
		"foreign":           {backends.Foreign("x"), alien},
		"denied":            {fmt.Errorf("%w: %w", backends.ErrDenied, context.Canceled), refused},
		"unavailable":       {backends.ErrUnavailable, passing},
		"denied, joined":    {errors.Join(backends.ErrUnavailable, backends.ErrDenied), refused},
		"stands alone":      {errors.Join(backends.ErrConflict, backends.ErrUnavailable), passing},
		"deposed, timeout":  {fmt.Errorf("%w: %w", backends.ErrDeposed, context.DeadlineExceeded), passing},
		"not tried, closed": {fmt.Errorf("%w: %w", backends.ErrNotTried, backends.ErrUnavailable), passing},
		"a user's":          {usersError{backends.ErrConflict}, passing},
		"a user's denied":   {fmt.Errorf("%w: %w", backends.ErrUnavailable, usersError{backends.ErrDenied}), passing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kindOf(c.err); got != c.want {
				t.Errorf("%v is of kind %d, not %d", c.err, got, c.want)
			}
		})
	}
}
