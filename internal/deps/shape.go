package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// core lists the folders of the core: what an election or a group runs, besides its backend.
var core = []string{".", "partition", "internal/annex", "internal/inject", "internal/rule", "internal/seats", "internal/store"}

const (
	mostLines  = 450 // of a file of the core
	mostFields = 15  // of a struct of the core; what it embeds counts once
)

// many are the structs that may have more fields, and why.
var many = map[string]string{
	"Options": "each field is a setting of users",
	"Trace":   "each field is a callback",
}

// A source is a file of the core, without tests.
type source struct {
	name  string
	text  []byte
	files *token.FileSet
	tree  *ast.File
}

// sources returns the files of a folder.
func sources(dir string) (all []source, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, err
}

func parse(name string, text []byte) (source, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	return source{name, text, files, tree}, err
}

// tooLarge returns a line for the file if it is too long, and for each of its structs that
// has too many fields.
func (s source) tooLarge() (all []string) {
	if n := bytes.Count(s.text, []byte("\n")); n > mostLines {
		all = append(all, fmt.Sprintf("%s has %d lines: a file of the core has %d at most", s.name, n, mostLines))
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if fields, ok := t.Type.(*ast.StructType); ok && fields.Fields.NumFields() > mostFields && many[t.Name.Name] == "" {
			all = append(all, fmt.Sprintf("%v: struct %s has %d fields: one of the core has %d at most", s.files.Position(t.Pos()), t.Name, fields.Fields.NumFields(), mostFields))
		}
		return true
	})
	return all
}

// sizes checks the files and structs of the core, and calls refuse for each that is too large.
func sizes(refuse func(line string)) error {
	for _, dir := range core {
		all, err := sources(dir)
		if err != nil {
			return err
		}
		for _, s := range all {
			for _, line := range s.tooLarge() {
				refuse(line)
			}
		}
	}
	return nil
}
