// Package metrics tests the alert rules and the dashboard of electorprom with
// Prometheus itself.
package metrics

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

const files = "../../../integrations/electorprom"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var rule = regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: .*$`)

// The alert rules pass their tests, and the tests find each rule that is broken: one
// that never fires, and one that always does.
func TestRules(t *testing.T) {
	t.Parallel()
	_, promtool, err := binaries.Prometheus()
	if err != nil {
		t.Fatal(err)
	}
	rules, tests := read(t, "alerts.yaml"), read(t, "alerts_test.yaml")
	try := func(t *testing.T, rules string) (string, error) {
		t.Helper()
		dir := t.TempDir()
		for name, text := range map[string]string{"alerts.yaml": rules, "alerts_test.yaml": tests} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts_test.yaml")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := try(t, rules); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := rule.FindAllStringSubmatch(rules, -1)
	if n := strings.Count(rules, "alert:"); n == 0 || len(found) != n {
		t.Fatalf("%d of %d rules are found", len(found), n)
	}
	for _, r := range found {
		for what, expr := range map[string]string{"never": "vector(0) > 0", "always": "vector(1)"} {
			t.Run(r[1]+" "+what, func(t *testing.T) {
				broken := strings.Replace(rules, r[0], "      - alert: "+r[1]+"\n        expr: "+expr, 1)
				if out, err := try(t, broken); err == nil || !strings.Contains(out, "alertname: "+r[1]+",") {
					t.Errorf("the broken rule is not found: %v\n%s", err, out)
				}
			})
		}
	}
}
