package backends_test

import (
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

type layer struct{ backends.Backend }

func (l layer) Unwrap() backends.Backend { return l.Backend }

func TestAs(t *testing.T) {
	b := memory.New()
	defer b.Close()
	for name, over := range map[string]backends.Backend{"itself": b, "a layer": layer{b}, "two layers": layer{layer{b}}} {
		if got, ok := backends.As[*memory.Backend](over); !ok || got != b {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	type opaque struct{ backends.Backend }
	for name, other := range map[string]backends.Backend{"none": nil, "a layer over none": layer{}, "a layer that does not unwrap": opaque{b}} {
		if got, ok := backends.As[*memory.Backend](other); ok || got != nil {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}
