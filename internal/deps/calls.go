package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/modules"
)

// Methods that send no request.
var quiet = []string{"Backend.Describe", "Backend.Close", "SameWriter.SameWrite"}

// callers are the packages that may use methods of a backend through the interfaces of package
// backends. Tests may too.
var callers = []struct {
	folder  string   // inside the module, with what is below it; "" for the root alone
	methods []string // nil for all
	why     string
}{
	{"/internal/store", nil, "it makes the requests of elections and groups"},
	{"", quiet, "it opens and closes, and reads what a backend is"},
	{"/partition", quiet, "the same"},
	{"/internal/fencing", quiet, "it names the store in errors"},
	{"/integrations/electorgocron", quiet, "the same"},

	{"/backends", nil, "the adapters"},
	{"/conformance", nil, "the suite for adapters"},
	{"/fence", nil, "guards, which ask the store at the write"},
	{"/cmd/elector", nil, "commands for operators, which look at records without an election"},
	{"/internal/fakehttp", nil, "for tests of adapters"},
	{"/internal/fault", nil, "faults in front of a backend"},
	{"/internal/mute", nil, "for tests of adapters"},
	{"/internal/fuzz", nil, "for tests of adapters"},
	{"/internal/pictures", quiet, "it draws real runs"},
	{"/examples/singleton", nil, "it measures what it shows"},
}

// A use is a method of a backend that a package uses.
type use struct {
	pkg    string
	method string // with its interface: Backend.Load
	at     token.Position
}

// allowed reports whether a package may use a method.
func allowed(u use) bool {
	for _, c := range callers {
		if folder := module + c.folder; u.pkg == folder || c.folder != "" && strings.HasPrefix(u.pkg, folder+"/") {
			return c.methods == nil || slices.Contains(c.methods, u.method)
		}
	}
	return false
}

// A checked is a set of packages with their types, as the compiler has exported them.
type checked struct {
	files    *token.FileSet
	importer types.Importer
	sources  map[string][]string // the files of each package
}

// check lists the packages of a module on Linux.
func check(dir string) (*checked, error) {
	env := append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	listed, err := modules.Go(dir, env, "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{with .Module}}{{.Main}}{{end}}{{range .GoFiles}}\t{{.}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	c := &checked{files: token.NewFileSet(), sources: map[string][]string{}}
	exports := map[string]string{}
	for line := range strings.Lines(listed) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		exports[f[0]] = f[1]
		if f[3] != "true" {
			continue
		}
		for _, name := range f[4:] {
			c.sources[f[0]] = append(c.sources[f[0]], filepath.Join(f[2], name))
		}
	}
	c.importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c, nil
}

// uses returns the uses of methods of backends in the packages.
func (c *checked) uses() (all []use, err error) {
	for _, pkg := range slices.Sorted(maps.Keys(c.sources)) {
		var trees []*ast.File
		for _, name := range c.sources[pkg] {
			tree, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			trees = append(trees, tree)
		}
		found, err := c.usesOf(pkg, trees)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// usesOf returns those of one package.
func (c *checked) usesOf(pkg string, trees []*ast.File) (all []use, err error) {
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: c.importer}
	if _, err := conf.Check(pkg, c.files, trees, info); err != nil {
		return nil, err
	}
	for at, s := range info.Selections {
		if method := ofBackend(s.Obj()); method != "" {
			all = append(all, use{pkg, method, c.files.Position(at.Pos())})
		}
	}
	slices.SortFunc(all, func(a, b use) int {
		return cmp.Or(strings.Compare(a.at.Filename, b.at.Filename), a.at.Offset-b.at.Offset)
	})
	return all, nil
}

// ofBackend returns the name of a method of backends.Backend or of an interface that embeds it,
// and "" for anything else.
func ofBackend(o types.Object) string {
	f, ok := o.(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != module+"/backends" {
		return ""
	}
	named, ok := f.Signature().Recv().Type().(*types.Named)
	if !ok || !types.IsInterface(named) {
		return ""
	}
	backend := f.Pkg().Scope().Lookup("Backend").Type().Underlying().(*types.Interface)
	if !types.Implements(named, backend) {
		return ""
	}
	return named.Obj().Name() + "." + f.Name()
}

// callsBackends checks who uses methods of backends, in all modules that users can get.
func callsBackends(refuse func(line string)) error {
	public, err := modules.Public(".")
	if err != nil {
		return err
	}
	used := map[string][]string{}
	for _, m := range public {
		c, err := check(m.Dir)
		if err != nil {
			return err
		}
		uses, err := c.uses()
		if err != nil {
			return err
		}
		for _, u := range uses {
			if !allowed(u) {
				refuse(fmt.Sprintf("%v: %s uses %s: a package that is not in the list of internal/deps/calls.go leaves that to internal/store", u.at, u.pkg, u.method))
			}
			if !slices.Contains(used[u.pkg], u.method) {
				used[u.pkg] = append(used[u.pkg], u.method)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(used)) {
		slices.Sort(used[pkg])
		fmt.Printf("deps: %s uses %s\n", cmp.Or(strings.TrimPrefix(pkg, module+"/"), pkg), strings.Join(used[pkg], ", "))
	}
	return nil
}
