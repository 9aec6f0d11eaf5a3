// Command declared writes a modfile of this module with the store clients in
// the versions that the go.mod of the root module declares, and those of the backends
// that are modules of their own: the least that their users get. This module's own go.mod has the newest.
//
// Usage: go run ./cmd/declared FILE.mod, then go test -modfile=FILE.mod
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/elector-go/elector/internal/modules"
)

const (
	root = "../.." // where the go.mod with the declared versions is
	ours = "github.com/elector-go/elector"
	sys  = "golang.org/x/sys" // no store's client, and containers need a newer one
)

func main() {
	if len(os.Args) != 2 || filepath.Ext(os.Args[1]) != ".mod" {
		fmt.Fprintln(os.Stderr, "usage: go run ./cmd/declared FILE.mod")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "declared:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	own, err := parse("go.mod")
	if err != nil {
		return err
	}
	// The root's is the last: where both need a client, its version counts.
	all, err := filepath.Glob(filepath.Join(root, "backends", "*", "go.mod"))
	if err != nil {
		return err
	}
	all = append(all, filepath.Join(root, "go.mod"))
	clients := map[string]string{}
	for _, r := range slices.Clone(own.Require) { // it forgets its indirect ones
		if r.Indirect {
			own.DropRequire(r.Mod.Path)
		}
	}
	for _, gomod := range all {
		declared, err := parse(gomod)
		if err != nil {
			return err
		}
		if err := lower(own, declared, clients); err != nil {
			return err
		}
	}
	own.Cleanup()
	content, err := own.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	if err := joinSums(strings.TrimSuffix(file, ".mod")+".sum", append(all, "go.mod")); err != nil {
		return err
	}
	if _, err := modules.Go(".", nil, "mod", "tidy", "-modfile="+file); err != nil {
		return err
	}
	return compare(file, clients)
}

func parse(file string) (*modfile.File, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(file, content, nil)
}

// lower makes the module own build the direct requirements of declared in the
// same versions, whatever else asks for newer ones, and notes the versions by path.
func lower(own, declared *modfile.File, versions map[string]string) error {
	for _, r := range declared.Require {
		if r.Indirect || r.Mod.Path == sys || strings.HasPrefix(r.Mod.Path, ours) {
			continue
		}
		versions[r.Mod.Path] = r.Mod.Version
		if err := own.AddRequire(r.Mod.Path, r.Mod.Version); err != nil {
			return err
		}
		if err := own.AddReplace(r.Mod.Path, "", r.Mod.Path, r.Mod.Version); err != nil {
			return err
		}
	}
	return nil
}

// joinSums writes the known checksums of the modules.
func joinSums(file string, of []string) error {
	var sums []byte
	for _, gomod := range of {
		content, err := os.ReadFile(strings.TrimSuffix(gomod, ".mod") + ".sum")
		if err != nil {
			return err
		}
		sums = append(sums, content...)
	}
	return os.WriteFile(file, sums, 0o644)
}

// compare shows what the go command builds with the modfile, and fails if that
// is not what is declared.
func compare(file string, declared map[string]string) error {
	out, err := modules.Go(".", nil, "list", "-modfile="+file, "-m", "-f", "{{.Path}} {{with .Replace}}{{.Version}}{{end}}", "all")
	if err != nil {
		return err
	}
	var wrong []string
	for line := range strings.Lines(out) {
		path, built, _ := strings.Cut(strings.TrimSpace(line), " ")
		version, ok := declared[path]
		if !ok {
			continue
		}
		fmt.Println("declared:", path, built)
		if built != version {
			wrong = append(wrong, path+" is declared at "+version)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("other versions are built: %s", strings.Join(wrong, "; "))
	}
	return nil
}
