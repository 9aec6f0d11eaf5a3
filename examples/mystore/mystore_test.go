package mystore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/conformance"
	"github.com/elector-go/elector/examples/mystore"
)

func TestConformance(t *testing.T) {
	table := mystore.Dial("elections")
	get := func(t testing.TB, name string) []byte {
		row, err := table.Get(context.Background(), name)
		if errors.Is(err, mystore.ErrNoRow) {
			return nil // absent
		}
		if err != nil {
			t.Fatal(err)
		}
		return row.Value
	}
	conformance.Run(t, conformance.Harness{
		Open: func(testing.TB) backends.Backend { return mystore.New(table) },
		OpenReadOnly: func(t testing.TB) backends.Backend {
			b, err := backends.OpenReadOnly(t.Context(), "mystore://elections")
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		Slow: true, // if each write costs milliseconds
		OpenFaulty: func(testing.TB) (backends.Backend, func(conformance.Fault)) {
			return mystore.New(table), func(f conformance.Fault) {
				table.Lose(f == conformance.LoseRequests, f == conformance.LoseAnswers)
			}
		},
		Raw: &conformance.Raw{
			Get:    get,
			Put:    func(_ testing.TB, name string, content []byte) { table.Put(name, content) },
			Delete: func(_ testing.TB, name string) { table.Delete(name) },
		},
	})
}
