package electortest_test

import (
	"os"
	"strings"
	"testing"
)

// TestPage compares the code in docs/testing.md with the tests that run.
func TestPage(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	code := read("sender_test.go")
	blocks := strings.Split(read("../docs/testing.md"), "```go\n")[1:]
	if len(blocks) < 4 {
		t.Errorf("docs/testing.md has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(code, block) {
			t.Errorf("this code of docs/testing.md is not in sender_test.go:\n%s", block)
		}
	}
}
