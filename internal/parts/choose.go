package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/choice"
)

// A chooser says which of the parts run.
type chooser struct {
	all                       bool
	share                     choice.Share
	kinds, since, only, cases string
}

// of returns the chosen parts.
func (c chooser) of(root string) ([]part, error) {
	var chosen []part
	kinds := strings.Fields(strings.ReplaceAll(c.kinds, ",", " "))
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			return nil, fmt.Errorf("unknown store %q; known are %s", kind, strings.Join(known, ", "))
		}
	}
	touched := func(part) (bool, error) { return true, nil }
	if c.since != "" {
		change, err := newChange(root, c.since)
		if err != nil {
			return nil, err
		}
		touched = change.touches
	}
	for _, p := range parts(kinds, c.cases) {
		switch {
		case c.only != "":
			if !strings.HasPrefix(p.name, c.only) {
				continue
			}
		case p.apart, c.since != "" && p.small:
			continue
		case len(kinds) > 0:
			if !slices.ContainsFunc(kinds, p.of) {
				continue
			}
		case !c.all && c.since == "" && !p.small:
			continue
		}
		is, err := touched(p)
		if err != nil {
			return nil, err
		}
		if is {
			chosen = append(chosen, p)
		}
	}
	return choice.Of(c.share, chosen), nil
}

// leftOut prints what make test does not run.
func (c chooser) leftOut() {
	if c.all || c.kinds != "" || c.since != "" || c.only != "" {
		return
	}
	var left []string
	for _, p := range parts(nil, "") {
		if !p.small && !p.apart {
			left = append(left, p.name)
		}
	}
	fmt.Printf("NOT RUN: %s; make test-all runs them\n", strings.Join(left, ", "))
}

// A change is what differs between a revision and the tree.
type change struct {
	root    string
	folders map[string]bool // of files that differ, below root
	pages   bool            // a page of documentation differs
}

func newChange(root, since string) (*change, error) {
	files, err := choice.Changed(root, since)
	if err != nil {
		return nil, err
	}
	c := &change{root: root, folders: map[string]bool{}}
	for name := range files {
		c.folders[filepath.Dir(name)] = true
		c.pages = c.pages || filepath.Ext(name) == ".md"
	}
	return c, nil
}

// below reports whether a file differs in a folder or below it.
func (c *change) below(folder string) bool {
	for f := range c.folders {
		if f == folder || strings.HasPrefix(f, folder+"/") {
			return true
		}
	}
	return false
}

// touches reports whether a file differs in the folder, or in the folder testdata, of a
// package that the part's tests are built from.
//
// The tests of a store whose server takes many minutes to build are touched by its adapter
// alone.
func (c *change) touches(p part) (bool, error) {
	if c.pages && p.pages {
		return true, nil
	}
	if slices.ContainsFunc(slow, p.of) {
		return slices.ContainsFunc(p.stores, func(kind string) bool { return c.below("backends/" + kind) }), nil
	}
	args := []string{"list", "-deps", "-test", "-f", "{{if not .Standard}}{{.Dir}}{{end}}"}
	if p.tags != "" {
		args = append(args, "-tags", p.tags)
	}
	cmd := exec.Command("go", append(args, p.packages...)...)
	cmd.Dir = filepath.Join(c.root, p.dir())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("go list for %s: %w", p.name, err)
	}
	for dir := range strings.Lines(string(out)) {
		below, err := filepath.Rel(c.root, strings.TrimSpace(dir))
		if err == nil && filepath.IsLocal(below) && (c.folders[below] || c.folders[filepath.Join(below, "testdata")]) {
			return true, nil
		}
	}
	return c.folders[p.dir()] && p.module != "", nil // its go.mod
}
