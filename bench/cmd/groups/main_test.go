package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page that keep writes is the one of the kept figures, with the section at its end.
func TestKeep(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"results.json", "about.json"} {
		b, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "report"), 0o777); err != nil {
		t.Fatal(err)
	}
	const section = "### Groups side by side\n\nfigures\n"
	if err := keep(folder, section); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if read(filepath.Join("report", "groups.md")) != section || !strings.HasSuffix(read("RESULTS.md"), "\n\n"+section) || !strings.Contains(read("RESULTS.md"), "## Partitions") {
		t.Error("the section is not kept, or not at the end of the page")
	}
	if err := keep(t.TempDir(), section); err == nil {
		t.Error("a folder without figures")
	}
}
