package main

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"strings"

	"github.com/elector-go/elector/internal/modules"
)

// exported returns the features of the public packages of a module.
func exported(dir string) ([]string, error) {
	os.Setenv("GOOS", "linux")
	os.Setenv("CGO_ENABLED", "0")
	listed, err := modules.Go(dir, nil, "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	if err != nil {
		return nil, err
	}
	files := map[string]string{} // with the types of each package
	for line := range strings.Lines(listed) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	public, _, err := modules.Packages(dir, nil)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, path := range public {
		pkg, err := from.Import(path)
		if err != nil {
			return nil, err
		}
		all = append(all, features(pkg)...)
	}
	return all, nil
}

// features returns a line for everything that a package exports.
func features(pkg *types.Package) (all []string) {
	qualify := types.RelativeTo(pkg)
	short := func(other *types.Package) string {
		if qualify(other) == "" {
			return ""
		}
		return other.Name()
	}
	add := func(format string, args ...any) {
		all = append(all, "pkg "+pkg.Path()+", "+fmt.Sprintf(format, args...))
	}
	for _, name := range pkg.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			add("%s = %s", types.ObjectString(o, short), o.Val().ExactString())
		case *types.TypeName:
			declared(o, short, add)
		default:
			add("%s", types.ObjectString(o, short))
		}
	}
	return all
}

// declared adds a type with its exported fields and methods.
func declared(o *types.TypeName, short types.Qualifier, add func(string, ...any)) {
	if o.IsAlias() {
		add("%s", types.ObjectString(o, short))
		return
	}
	name := types.TypeString(o.Type(), short)
	switch u := o.Type().Underlying().(type) {
	case *types.Struct:
		add("type %s struct", name)
		for f := range u.Fields() {
			if f.Exported() {
				add("type %s struct, %s %s", name, f.Name(), types.TypeString(f.Type(), short))
			}
		}
	case *types.Interface:
		add("type %s interface", name)
		for m := range u.Methods() {
			add("type %s interface, %s%s", name, m.Name(), signature(m, short))
		}
		return
	default:
		add("type %s %s", name, types.TypeString(u, short))
	}
	value := types.NewMethodSet(o.Type())
	for s := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		if !s.Obj().Exported() {
			continue
		}
		receiver := "*" + name
		if value.Lookup(o.Pkg(), s.Obj().Name()) != nil {
			receiver = name
		}
		add("method (%s) %s%s", receiver, s.Obj().Name(), signature(s.Obj(), short))
	}
}

func signature(o types.Object, short types.Qualifier) string {
	return strings.TrimPrefix(types.TypeString(o.Type(), short), "func")
}
