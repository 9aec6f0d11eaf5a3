// Package page compares the code in pages of documentation with code that runs.
package page

import (
	"os"
	"strings"
	"testing"
)

// Check fails the test unless the page has at least so many blocks of Go, and each
// of them stands in one of the files.
func Check(t *testing.T, page string, blocks int, files ...string) {
	t.Helper()
	code := ""
	for _, file := range files {
		code += read(t, file)
	}
	for _, block := range Blocks(t, page, "go", blocks) {
		if !strings.Contains(code, block) {
			t.Errorf("this code of %s is in none of %v:\n%s", page, files, block)
		}
	}
}

// Blocks returns the code of a page in one language. It fails the test if the page
// has fewer blocks than that.
func Blocks(t *testing.T, page, language string, least int) (found []string) {
	t.Helper()
	for _, rest := range strings.Split(read(t, page), "```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(rest, "```")
		if !closed {
			t.Errorf("%s: a block of code has no end", page)
		}
		found = append(found, strings.TrimSpace(block))
	}
	if len(found) < least {
		t.Errorf("%s has %d blocks of %s; want %d", page, len(found), language, least)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
