//go:build unix

package demo

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/overlay"
)

// The demo fails for what is wrong, and for nothing else: it is played as it is,
// and with the code broken in each way that it must notice.
func TestDemo(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		broken overlay.Edit
		want   string
	}{
		{"unbroken", overlay.Edit{}, "Everything was as promised"},
		{"overlap", overlay.Edit{
			File: "internal/rule/rule.go",
			Old:  "return ttl - time.Duration(float64(ttl)*drift)",
			New:  "return ttl + ttl/2",
		}, "were both valid for"},
		{"stale-write", overlay.Edit{
			File: "examples/singleton/protected/file.go",
			Old:  "if token < highest {",
			New:  "if false {",
		}, "NOT AS PROMISED: the late write of the leader that was stopped was not refused"},
		{"no-takeover", overlay.Edit{
			File: "internal/rule/rule.go",
			Old:  "return ttl + time.Duration(float64(ttl)*drift)",
			New:  "return 1000 * ttl",
		}, "NOT AS PROMISED: waited in vain until another process leads"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(dir, c.name)
			build := []string{"build", "-o", program}
			if c.broken.File != "" {
				list, err := overlay.Write(root, dir, c.name, []overlay.Edit{c.broken})
				if err != nil {
					t.Fatal(err)
				}
				build = append(build, "-overlay", list)
			}
			if out, err := exec.CommandContext(t.Context(), "go", append(build, "..")...).CombinedOutput(); err != nil {
				t.Fatalf("building: %v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), program, "demo").CombinedOutput()
			if failed := err != nil; failed != (c.broken.File != "") || !strings.Contains(string(out), c.want) {
				t.Errorf("error %v; want %q in:\n%s", err, c.want, out)
			}
		})
	}
}
