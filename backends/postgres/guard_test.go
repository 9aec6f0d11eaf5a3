package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

type holding backends.Acquisition

func (h holding) Acquisition() (backends.Acquisition, error) { return backends.Acquisition(h), nil }

func TestGuard(t *testing.T) {
	b := &Backend{table: table{"public", "elector"}, guarded: true}
	h := holding{Backend: b, Election: "reports", Record: backends.Record{Token: 7, Attempt: backends.Attempt{Nonce: `a'b\c`, Sequence: 1}}}
	contains := func(t *testing.T, text string) {
		t.Helper()
		if statement, err := Guard(h); err != nil || !strings.Contains(statement, text) {
			t.Errorf("the guard lacks %s: %v\n%s", text, err, statement)
		}
	}
	t.Run("quoted", func(t *testing.T) {
		contains(t, `name = E'reports' and token = 7 `)
		contains(t, `E'a''b\\c.'`)
	})
	t.Run("bound", func(t *testing.T) {
		h.Remaining = 10 * time.Second
		contains(t, `'idle_in_transaction_session_timeout', '10000'`)
		h.Remaining = time.Microsecond // 0 would be no bound
		contains(t, `'idle_in_transaction_session_timeout', '1'`)
	})
	t.Run("index", func(t *testing.T) {
		b.guarded = false
		if _, err := Guard(h); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("without the index: %v", err)
		}
	})
}
