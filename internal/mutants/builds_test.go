package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A listed is a package as go list describes it.
type listed struct {
	Dir        string
	ImportPath string
	Export     string
	GoFiles    []string
	ImportMap  map[string]string
}

// The packages of a module, by their folders, and a way to import any of them.
type packages struct {
	of    map[string]listed
	types types.Importer
}

func load(t *testing.T, fset *token.FileSet, dir string) packages {
	t.Helper()
	c := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,ImportMap", "./...")
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", dir, err)
	}
	p, exports := packages{of: map[string]listed{}}, map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		p.of[l.Dir], exports[l.ImportPath] = l, l.Export
	}
	p.types = importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return p
}

// An imports is what one package imports, with the names that it knows others by.
type imports struct {
	types.Importer
	names map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if real, ok := i.names[path]; ok {
		path = real
	}
	return i.Importer.Import(path)
}

// Each mutant builds: one that does not proves nothing, and would be found only in the run
// that has its turn.
func TestBuilds(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	fset, modules := token.NewFileSet(), map[string]packages{}
	for _, m := range mutants {
		if _, ok := modules[m.module]; !ok {
			modules[m.module] = load(t, fset, filepath.Join(root, m.module))
		}
		changed := changedBy(t, root, m)
		for _, dir := range folders(changed) {
			p, ok := modules[m.module].of[filepath.Join(root, dir)]
			if !ok {
				t.Errorf("%s: the module %q has no package in %s", m.name, m.module, dir)
				continue
			}
			if err := p.check(fset, imports{modules[m.module].types, p.ImportMap}, root, dir, changed); err != nil {
				t.Errorf("%s does not build: %v", m.name, err)
			}
		}
	}
}

// changedBy returns the files that a mutant changes, by their path in the tree.
func changedBy(t *testing.T, root string, m mutant) map[string]string {
	t.Helper()
	changed := map[string]string{}
	for _, e := range m.edits {
		if e.Old == "" {
			changed[e.File] = e.New
			continue
		}
		if changed[e.File] == "" {
			text, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				t.Fatal(err)
			}
			changed[e.File] = string(text)
		}
		changed[e.File] = strings.Replace(changed[e.File], e.Old, e.New, 1)
	}
	return changed
}

// folders are those of some files, each once.
func folders(files map[string]string) (all []string) {
	seen := map[string]bool{}
	for f := range files {
		if d := path.Dir(f); !seen[d] && !strings.HasSuffix(f, "_test.go") {
			seen[d] = true
			all = append(all, d)
		}
	}
	return all
}

// check checks the types of a package of which some files are changed.
func (l listed) check(fset *token.FileSet, from types.Importer, root, dir string, changed map[string]string) error {
	var files []*ast.File
	parse := func(name string, source any) error {
		f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		files = append(files, f)
		return err
	}
	for _, name := range l.GoFiles {
		if _, ok := changed[path.Join(dir, name)]; ok {
			continue
		}
		if err := parse(filepath.Join(l.Dir, name), nil); err != nil {
			return err
		}
	}
	for name, text := range changed {
		if path.Dir(name) == dir && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			if err := parse(filepath.Join(root, name), text); err != nil {
				return err
			}
		}
	}
	_, err := (&types.Config{Importer: from}).Check(l.ImportPath, fset, files, nil)
	return err
}
