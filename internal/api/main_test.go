package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const source = `package p

const Max Number = 1 << 53

var Errors []error

type Number int64

func (Number) Text() string { return "" }
func (*Number) Set(s string) {}
func (Number) hidden() {}

type Store interface {
	Load(name string) (string, error)
	seal()
}

type Options struct {
	TTL Number
	own int
}

type Old = Options

func Await[T any](call func() (T, error)) T { panic(0) }
func hidden() {}
`

func TestFeatures(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("example.test/p", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := features(pkg)
	slices.Sort(got)
	want := `const Max Number = 9007199254740992
func Await[T any](call func() (T, error)) T
method (*Number) Set(s string)
method (Number) Text() string
type Number int64
type Old = Options
type Options struct
type Options struct, TTL Number
type Store interface
type Store interface, Load(name string) (string, error)
type Store interface, seal()
var Errors []error`
	if joined := strings.ReplaceAll(strings.Join(got, "\n"), "pkg example.test/p, ", ""); joined != want {
		t.Errorf("got\n%s\nwant\n%s", joined, want)
	}
}

func TestCompare(t *testing.T) {
	got := compare([]string{"stays", "goes"}, []string{"comes", "stays"})
	if want := []string{"- goes", "+ comes"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCount(t *testing.T) {
	all := []string{"pkg example.test/p, func A()", "pkg example.test/p, type T struct", "pkg example.test/p/q, func B()", "pkg example.test/pq, func C()"}
	if n := count(all, "example.test/p"); n != 2 {
		t.Errorf("the package has %d features, want 2", n)
	}
}
