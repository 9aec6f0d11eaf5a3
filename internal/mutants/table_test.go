package main

import (
	"testing"

	"github.com/elector-go/elector/internal/overlay"
)

// The texts that mutants change are in the code: a change of the code shows at
// once which mutants to bring up to date.
func TestTable(t *testing.T) {
	for _, m := range mutants {
		if _, err := overlay.Write("../..", t.TempDir(), "mutant", m.changes()); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
