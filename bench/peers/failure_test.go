package peers

import (
	"errors"
	"fmt"
	"testing"
)

// What is not the failure of another library is never lost.
func TestBesides(t *testing.T) {
	other := fmt.Errorf("cost: %w", &Failure{"pglock", "postgres", errors.New("too slow")})
	own := &Failure{"elector", "postgres", errors.New("too slow")}
	plain := errors.New("no store")
	for _, c := range []struct {
		name string
		err  error
		left bool
	}{
		{"nothing", nil, false},
		{"another library", other, false},
		{"two of them", errors.Join(other, fmt.Errorf("x: %w", errors.Join(other))), false},
		{"ours", own, true},
		{"ours among others", errors.Join(other, fmt.Errorf("x: %w", errors.Join(other, own))), true},
		{"something else", fmt.Errorf("x: %w", plain), true},
		{"something else among others", errors.Join(other, plain), true},
	} {
		if got := Besides(c.err); (got != nil) != c.left {
			t.Errorf("%s: %v is left", c.name, got)
		}
	}
}
