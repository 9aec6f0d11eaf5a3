package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A package that calls a Backend by itself is found, however it gets at the method.
func TestCallsBackends(t *testing.T) {
	c, err := check("../../backends")
	if err != nil {
		t.Fatal(err)
	}
	for body, method := range map[string]string{
		`b.Load(nil, "")`:                                     "Backend.Load",
		`f := b.Swap; _ = f`:                                  "Backend.Swap",
		`backends.Backend.Close(b)`:                           "Backend.Close",
		`b.(backends.Watcher).Watch(nil, "", nil)`:            "Watcher.Watch",
		`b.(backends.BatchLoader).LoadMany(nil, nil)`:         "BatchLoader.LoadMany",
		`b.(backends.PresenceWatcher).Describe()`:             "Backend.Describe",
		`x := struct{ backends.Backend }{b}; x.Load(nil, "")`: "Backend.Load",
		`var own mine = b; own.Load(nil, "")`:                 "Backend.Load",
		`backends.AsWatcher(b)`:                               "",
		`var r backends.Record; r.Exists(); other(b)`:         "",
	} {
		tree, err := parser.ParseFile(c.files, "p.go", `package p

import "github.com/elector-go/elector/backends"

type mine interface { backends.Backend }

func other(any) {}

func p(b backends.Backend) { `+body+` }
`, 0)
		if err != nil {
			t.Fatal(err)
		}
		uses, err := c.usesOf(module+"/p", []*ast.File{tree})
		switch {
		case err != nil:
			t.Errorf("%s: %v", body, err)
		case method == "" && len(uses) > 0, method != "" && (len(uses) != 1 || uses[0].method != method):
			t.Errorf("%s uses %v, want %q", body, uses, method)
		case method != "" && allowed(uses[0]):
			t.Errorf("%s: it is allowed", body)
		}
	}
	for _, c := range []struct {
		pkg, method string
		may         bool
	}{
		{"/internal/store", "Backend.Load", true}, {"", "Backend.Describe", true}, {"", "Backend.Load", false}, {"/partition", "Watcher.Watch", false},
		{"/backends/etcd", "Backend.Load", true}, {"/electorhttp", "Backend.Describe", false}, {"/internal/storeurl", "Backend.Load", false},
	} {
		if may := allowed(use{module + c.pkg, c.method, token.Position{}}); may != c.may {
			t.Errorf("%s may use %s: %v", c.pkg, c.method, may)
		}
	}
}

func TestSizes(t *testing.T) {
	fields := func(n int) string { return strings.Repeat("a, ", n-1) + "a int" }
	for text, wrong := range map[string]int{
		"package p\n": 0,
		"package p\n\ntype s struct { " + fields(mostFields) + " }\n":                0,
		"package p\n\ntype s struct { " + fields(mostFields+1) + " }\n":              1,
		"package p\n\ntype s struct { " + fields(mostFields) + "; t }\ntype t int\n": 1,
		"package p\n\ntype Options struct { " + fields(mostFields+1) + " }\n":        0,
		"package p\n" + strings.Repeat("\n", mostLines-1):                            0,
		"package p\n" + strings.Repeat("\n", mostLines):                              1,
	} {
		s, err := parse("p.go", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if all := s.tooLarge(); len(all) != wrong {
			t.Errorf("%.60q: %q", text, all)
		}
	}
}

func TestCount(t *testing.T) {
	s, err := parse("p.go", []byte("// Package p is.\npackage p\n\n/* a\n\nb */\nvar x = `a\n\n` // is text\n\n// End.\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.count(); got != (count{code: 4, comments: 5, blanks: 2}) {
		t.Errorf("%+v", got)
	}
}
