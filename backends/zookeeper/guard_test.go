package zookeeper

import (
	"errors"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A fakeLease is a lease with this acquisition, or why it is over.
type fakeLease struct {
	acquisition backends.Acquisition
	over        error
}

func (h fakeLease) Acquisition() (backends.Acquisition, error) { return h.acquisition, h.over }

// A lease that is over, or of another store, makes no request.
func TestGuardRefuses(t *testing.T) {
	over, elsewhere := errors.New("it is over"), memory.New()
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		fakeLease
		want error
		text string
	}{
		"a lease that is over":     {fakeLease{over: over}, over, "it is over"},
		"a lease of another store": {fakeLease{acquisition: backends.Acquisition{Backend: elsewhere, Election: "invoice"}}, backends.ErrMisconfigured, "election invoice is on memory:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, guard := Guard(test.fakeLease)
			_, multi := Multi(nil, test.fakeLease) // every request panics
			for _, err := range []error{guard, multi} {
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("got %v, want %v with %q", err, test.want, test.text)
				}
			}
		})
	}
}
