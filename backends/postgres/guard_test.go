package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elector-go/elector/backends"
)

type fakeLease backends.Acquisition

func (h fakeLease) Acquisition() (backends.Acquisition, error) { return backends.Acquisition(h), nil }

func TestGuard(t *testing.T) {
	b := &Backend{table: table{"public", "elector"}, guarded: true, base: backends.NewBase("postgres://h/db", nil)}
	h := fakeLease{Backend: b, Election: "reports", Record: backends.Record{Token: 7, Attempt: backends.Attempt{Nonce: `a'b\c`, Sequence: 1}}}
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
	t.Run("query", func(t *testing.T) {
		g, ok := b.SQLGuard(backends.Acquisition(h))
		if want := `select from "public"."elector" where name = $1 and token = $2 and holder <> '' and starts_with(attempt, $3) for key share`; !ok || !strings.Contains(g.Query, want) {
			t.Errorf("the guard is %s, want %s", g.Query, want)
		}
		if want := []any{"reports", int64(7), `a'b\c.`}; !slices.Equal(g.Args, want) {
			t.Errorf("its parameters are %q, want %q", g.Args, want)
		}
		for code, want := range map[string]bool{"42P01": true, "42501": true, "0A000": true, "40001": false, "40P01": false, "55P03": false, "25P02": false, "57P01": false} {
			if g.Absent(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})) != want {
				t.Errorf("an error %s is absence: %v", code, !want)
			}
		}
		if g.Absent(errors.New("connection lost")) {
			t.Error("a lost connection is absence")
		}
	})
	t.Run("index", func(t *testing.T) {
		b.guarded = false
		if _, ok := b.SQLGuard(backends.Acquisition(h)); ok {
			t.Error("a query without the index")
		}
		if _, err := Guard(h); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("without the index: %v", err)
		}
	})
}
