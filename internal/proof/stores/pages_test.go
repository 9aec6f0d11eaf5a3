package stores

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/internal/page"
)

// The example of a checkpoint, as its user runs it, and the code in docs/choose.md.
// The example fails by itself if an invoice is booked twice.
func TestCheckpoint(t *testing.T) {
	s := obtain(t, Postgres)
	for _, election := range []string{"", "file://" + t.TempDir()} { // in the database, and on another store
		said := example(t, s, "checkpoint", "ELECTOR_URL="+election)
		if !strings.Contains(said, "second: books invoice 5\n") || !strings.Contains(said, "10 invoices, 10 bookings\n") {
			t.Errorf("with the election on %q, the example printed:\n%s", election, said)
		}
	}
	page.Check(t, "../../../docs/choose.md", 1, "../../../examples/checkpoint/main.go")
}

// PostgreSQL accepts the statements of docs/choose.md.
func TestStatementsOfPage(t *testing.T) {
	s := obtain(t, Postgres)
	c, err := pgx.Connect(t.Context(), s.URL)
	must(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), `
		create temporary table account (id int, cents int, version int);
		create temporary table sent (invoice int unique);
		create temporary table job (id int, done timestamptz)`)
	must(t, err)
	for _, statement := range page.Blocks(t, "../../../docs/choose.md", "sql", 3) {
		if _, err := c.Prepare(t.Context(), "", statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
