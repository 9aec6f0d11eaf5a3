package fencesql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencesql"
)

// What cannot be used is refused before the database is asked. The databases are in
// internal/proof/fences.
func TestInvalid(t *testing.T) {
	for _, name := range []string{"", "1st", "a.b.c", `a"b`, "a b", "fences; drop table ledger", strings.Repeat("x", 64)} {
		if table, err := fencesql.New(fencesql.SQLite, name); !errors.Is(err, elector.ErrInvalid) || table != nil {
			t.Errorf("New with the name %q is %v, %v", name, table, err)
		}
	}
	if table, err := fencesql.New(fencesql.SQLite+1, "fences"); !errors.Is(err, elector.ErrInvalid) || table != nil {
		t.Errorf("New with an unknown dialect is %v, %v", table, err)
	}
	table, err := fencesql.New(fencesql.PostgreSQL, "billing.fences")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		resource string
		token    elector.Token
	}{{"a", 0}, {"a", elector.MaxToken + 1}, {strings.Repeat("x", 256), 1}, {"a\x00", 1}, {"\xff", 1}} {
		if err := table.Enter(t.Context(), nil, c.resource, c.token); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("Enter %.10q with token %d: %v", c.resource, c.token, err)
		}
	}
}
