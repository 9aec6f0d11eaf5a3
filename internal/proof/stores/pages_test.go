package stores

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The example of a checkpoint, as its user runs it, and the code in docs/choose.md.
// The example fails by itself if an invoice is booked twice.
func TestCheckpoint(t *testing.T) {
	s := obtain(t, Postgres)
	example := exec.CommandContext(t.Context(), "go", "run", "./examples/checkpoint")
	example.Dir = "../../.."
	example.Env = append(os.Environ(), "POSTGRES_URL="+s.URL)
	said, err := example.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "second: books invoice 5\n") || !strings.Contains(string(said), "10 invoices, 10 bookings\n") {
		t.Errorf("%v:\n%s", err, said)
	}
	code, err := os.ReadFile("../../../examples/checkpoint/main.go")
	must(t, err)
	found := blocks(t, "choose.md", "go")
	if len(found) == 0 {
		t.Error("docs/choose.md has no code")
	}
	for _, block := range found {
		if !strings.Contains(string(code), block) {
			t.Errorf("this code of docs/choose.md is not in examples/checkpoint:\n%s", block)
		}
	}
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
	found := blocks(t, "choose.md", "sql")
	if len(found) < 3 {
		t.Errorf("docs/choose.md has %d statements", len(found))
	}
	for _, statement := range found {
		if _, err := c.Prepare(t.Context(), "", statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// blocks returns the code of a page of docs in one language.
func blocks(t *testing.T, page, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + page)
	must(t, err)
	for _, rest := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(rest, "```")
		if !closed {
			t.Errorf("docs/%s: a block of code has no end", page)
		}
		found = append(found, strings.TrimSpace(block))
	}
	return found
}
