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
		"unknown":           {driver, transient},
		"conflict":          {fmt.Errorf("%w: %w", backends.ErrConflict, driver), conflicting},
		"not tried":         {fmt.Errorf("%w: %w", backends.ErrNotTried, driver), untried},
		"deposed":           {backends.ErrDeposed, presenceLost},
		"foreign":           {backends.Foreign("x"), foreign},
		"denied":            {fmt.Errorf("%w: %w", backends.ErrDenied, context.Canceled), refused},
		"unavailable":       {backends.ErrUnavailable, transient},
		"denied, joined":    {errors.Join(backends.ErrUnavailable, backends.ErrDenied), refused},
		"stands alone":      {errors.Join(backends.ErrConflict, backends.ErrUnavailable), transient},
		"deposed, timeout":  {fmt.Errorf("%w: %w", backends.ErrDeposed, context.DeadlineExceeded), transient},
		"not tried, closed": {fmt.Errorf("%w: %w", backends.ErrNotTried, backends.ErrUnavailable), transient},
		"a user's":          {usersError{backends.ErrConflict}, transient},
		"a user's denied":   {fmt.Errorf("%w: %w", backends.ErrUnavailable, usersError{backends.ErrDenied}), transient},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kindOf(c.err); got != c.want {
				t.Errorf("%v is of kind %d, not %d", c.err, got, c.want)
			}
		})
	}
}
