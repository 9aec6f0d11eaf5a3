package chaos

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/overlay"
)

// TestMutants checks that each mutant can be made of the tree as it is: that its edits
// apply, each to a text that occurs once, and that the packages that they change compile.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(Mutants)) {
		if err := compiles(t.Context(), dir, name, Mutants[name].edits); err != nil {
			t.Errorf("mutant %s cannot be made: %v", name, err)
		}
	}
}

// compiles compiles the packages that a mutant changes.
func compiles(ctx context.Context, dir, mutant string, edits []overlay.Edit) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	list, err := overlay.Write(root, dir, mutant, slices.Concat(stopInLock, shortAudit, edits))
	if err != nil {
		return err
	}
	packages := map[string]bool{}
	for _, e := range edits {
		packages[path.Join("github.com/elector-go/elector", path.Dir(e.File))] = true
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-overlay", list}, slices.Sorted(maps.Keys(packages))...)...)
	cmd.Dir = filepath.Join(root, "internal/proof")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// TestStaleMutant shows that a mutant is found whose text is gone, and one that does not
// compile.
func TestStaleMutant(t *testing.T) {
	const file = "internal/rule/rule.go"
	for name, e := range map[string]overlay.Edit{
		"gone":           {File: file, Old: "a text that nobody wrote", New: ""},
		"twice":          {File: file, Old: "return ", New: ""},
		"not to compile": {File: file, Old: "return ttl + time.Duration(float64(ttl)*drift)", New: "return nothing"},
	} {
		if compiles(t.Context(), t.TempDir(), "stale", []overlay.Edit{e}) == nil {
			t.Errorf("a mutant whose text is %s can be made", name)
		}
	}
}
