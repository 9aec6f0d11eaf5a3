package migrate

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/page"
)

// The code of docs/migrate.md is that of this package, and the versions that it names
// are those that this module uses.
func TestPage(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	page.Check(t, "../../docs/migrate.md", 5, files...)

	text, err := os.ReadFile("../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	requires, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for heading, module := range map[string]string{
		"etcd": "go.etcd.io/etcd/client/v3", "Kubernetes": "k8s.io/client-go", "pglock": "cirello.io/pglock", "dynamolock": "cirello.io/dynamolock/v2",
	} {
		named := regexp.MustCompile(`(?m)^### ` + heading + `\b.* \((?:client )?([0-9.]+)\)$`).FindStringSubmatch(string(text))
		if named == nil || !strings.Contains(string(requires), module+" v"+named[1]+"\n") {
			t.Errorf("docs/migrate.md names %q for %s, and bench/go.mod another version", named, heading)
		}
	}
}
