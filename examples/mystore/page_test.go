package mystore_test

import (
	"os"
	"strings"
	"testing"
)

// TestPage compares the code in docs/backend.md with this package.
func TestPage(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	code := read("mystore.go") + read("mystore_test.go")
	blocks := strings.Split(read("../../docs/backend.md"), "```go\n")[1:]
	if len(blocks) < 3 {
		t.Errorf("docs/backend.md has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(code, strings.TrimSpace(block)) {
			t.Errorf("this code of docs/backend.md is not in examples/mystore:\n%s", block)
		}
	}
}
