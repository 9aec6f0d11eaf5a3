package fakehttp

import (
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// ReadsAlone checks that a handle for reading alone describes itself as one, reads, and
// refuses a write. It returns what the handle has found.
func ReadsAlone(t *testing.T, b backends.Backend, next backends.Record) []backends.Finding {
	t.Helper()
	if !b.Describe().ReadOnly {
		t.Error("its description does not have ReadOnly")
	}
	_, loaded := b.Load(t.Context(), "a")
	_, listed := b.(backends.Lister).List(t.Context())
	i, inspected := b.(backends.Inspector).Inspect(t.Context(), time.Second)
	if err := errors.Join(loaded, listed, inspected); err != nil {
		t.Error(err)
	}
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, next); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	return i.Findings
}
