package migrate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The code of docs/migrate.md is that of this package, and the versions that it names
// are those that this module uses.
func TestPage(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			code += read(f)
		}
	}
	page := read("../../docs/migrate.md")
	blocks := strings.Split(page, "```go\n")[1:]
	if len(blocks) < 5 {
		t.Errorf("docs/migrate.md has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(code, strings.TrimSpace(block)) {
			t.Errorf("this code of docs/migrate.md is not in bench/migrate:\n%s", block)
		}
	}
	requires := read("../go.mod")
	for heading, module := range map[string]string{
		"etcd": "go.etcd.io/etcd/client/v3", "Kubernetes": "k8s.io/client-go", "pglock": "cirello.io/pglock", "dynamolock": "cirello.io/dynamolock/v2",
	} {
		named := regexp.MustCompile(`(?m)^### ` + heading + `\b.* \((?:client )?([0-9.]+)\)$`).FindStringSubmatch(page)
		if named == nil || !strings.Contains(requires, module+" v"+named[1]+"\n") {
			t.Errorf("docs/migrate.md names %q for %s, and bench/go.mod another version", named, heading)
		}
	}
}
