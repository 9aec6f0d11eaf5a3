package stores

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The example of a database that refuses a stale write, as its user runs
// it. It fails by itself if the write is not refused.
func TestFencedWriter(t *testing.T) {
	s := obtain(t, Postgres)
	if said := example(t, s, "fencedwriter"); !strings.Contains(strings.ToLower(said), "refused") {
		t.Errorf("the example printed:\n%s", said)
	}
}

// example runs a program of examples on PostgreSQL, and returns what it prints.
func example(t *testing.T, s *Store, name string, environment ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "run", "./examples/"+name)
	c.Dir = "../../.."
	c.Env = append(append(os.Environ(), "POSTGRES_URL="+s.URL), environment...)
	said, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("example %s: %v:\n%s", name, err, said)
	}
	return string(said)
}
