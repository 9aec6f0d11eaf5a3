package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMirror(t *testing.T) {
	c := &cache{from: t.TempDir(), dir: t.TempDir()}
	put := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(dir string, want ...string) {
		t.Helper()
		got, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
	build := func(pkg string) {
		t.Helper()
		if err := c.prepare(pkg); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(c.from, "00", "a"))
	put(filepath.Join(c.from, "ff", "b"))
	build("one")
	expect(c.dir, "00/a", "ff/b")
	put(filepath.Join(c.dir, "00", "of-a-mutant"))
	for range most - 1 {
		build("one")
	}
	expect(c.dir, "00/a", "00/of-a-mutant", "ff/b")
	build("one")
	expect(c.dir, "00/a", "ff/b")
	put(filepath.Join(c.dir, "00", "of-a-mutant"))
	put(filepath.Join(c.from, "0a", "of-the-unbroken"))
	build("two")
	expect(c.dir, "00/a", "0a/of-the-unbroken", "ff/b")
	expect(c.from, "00/a", "0a/of-the-unbroken", "ff/b")
}
