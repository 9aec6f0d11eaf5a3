package conformance_test

import (
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/conformance"
)

// TestMemory runs the suite on the memory backend, and is all that it takes to
// run it on another one.
func TestMemory(t *testing.T) {
	store := memory.NewStore()
	conformance.Run(t, conformance.Harness{
		Open:         func(testing.TB) backends.Backend { return store.Handle() },
		OpenReadOnly: func(testing.TB) backends.Backend { return store.ReadOnly() },
		Raw: &conformance.Raw{
			Get:    func(_ testing.TB, name string) []byte { return store.Get(name) },
			Put:    func(_ testing.TB, name string, content []byte) { store.Put(name, content) },
			Delete: func(_ testing.TB, name string) { store.Delete(name) },
			Depose: func(_ testing.TB, name string) { store.Depose(name) },
		},
	})
}
