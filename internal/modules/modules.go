// Package modules finds the Go modules of this repository that are for its
// users.
package modules

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Module is a module of the repository.
type Module struct {
	Path string
	Dir  string // inside the repository, with slashes; "." for the root
}

// Public returns the modules below the folder root that users can get, the
// root's first: all but those in internal, bench, examples and testdata.
func Public(root string) ([]Module, error) {
	var found []Module
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && file != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "bench", "examples", "testdata", "bin"}, name)) {
			return fs.SkipDir
		}
		if name != "go.mod" {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		path, err := Go(filepath.Dir(file), nil, "list", "-m")
		if err != nil {
			return err
		}
		found = append(found, Module{Path: strings.TrimSpace(path), Dir: filepath.ToSlash(dir)})
		return nil
	})
	slices.SortFunc(found, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return found, err
}

// Go runs the go command in a folder, in an environment unless that is nil, and
// returns what it prints. Its errors it prints to ours.
func Go(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}

// Packages returns the import paths of a module's packages that users can
// import, and of its commands. Examples are neither.
func Packages(dir string, env []string) (libraries, commands []string, err error) {
	listed, err := Go(dir, env, "list", "-find", "-f", "{{.Name}} {{.ImportPath}}", "./...")
	for line := range strings.Lines(listed) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case hidden.MatchString(path):
		case name == "main":
			commands = append(commands, path)
		default:
			libraries = append(libraries, path)
		}
	}
	return libraries, commands, err
}

var hidden = regexp.MustCompile(`/(internal|examples)(/|$)`)
