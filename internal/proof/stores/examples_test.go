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
	example := exec.CommandContext(t.Context(), "go", "run", "./examples/fencedwriter")
	example.Dir = "../../.."
	example.Env = append(os.Environ(), "POSTGRES_URL="+s.URL)
	said, err := example.CombinedOutput()
	if err != nil || !strings.Contains(strings.ToLower(string(said)), "refused") {
		t.Errorf("%v:\n%s", err, said)
	}
}
