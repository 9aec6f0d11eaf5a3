package zookeeper

import (
	"errors"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A holding is a lease with this acquisition, or why it is over.
type holding struct {
	acquisition backends.Acquisition
	over        error
}

func (h holding) Acquisition() (backends.Acquisition, error) { return h.acquisition, h.over }

// A lease that is over, or of another store, makes no request.
func TestGuardRefuses(t *testing.T) {
	over, elsewhere := errors.New("it is over"), memory.New()
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		holding
		want error
		text string
	}{
		"a lease that is over":     {holding{over: over}, over, "it is over"},
		"a lease of another store": {holding{acquisition: backends.Acquisition{Backend: elsewhere, Election: "invoice"}}, backends.ErrMisconfigured, "election invoice is on memory:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, guard := Guard(test.holding)
			_, multi := Multi(nil, test.holding) // every request panics
			for _, err := range []error{guard, multi} {
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("got %v, want %v with %q", err, test.want, test.text)
				}
			}
		})
	}
}
