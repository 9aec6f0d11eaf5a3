// Command declared writes a modfile of this module with the store clients in
// the versions that go.mod declares, the root's and those of adapters that are modules
// of their own: the least that their users get. This module's own go.mod has the newest.
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
	own = "github.com/elector-go/elector"
	sys = "golang.org/x/sys" // no store's client, and containers need a newer one
)

// declaring are the folders of the modules that declare versions.
var declaring = []string{"../..", "../../backends/s3"}

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
	proof, err := parse("go.mod")
	if err != nil {
		return err
	}
	clients := map[string]string{}
	for _, dir := range declaring {
		declared, err := parse(filepath.Join(dir, "go.mod"))
		if err != nil {
			return err
		}
		if err := lower(proof, declared, clients); err != nil {
			return err
		}
	}
	content, err := proof.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	if err := joinSums(strings.TrimSuffix(file, ".mod") + ".sum"); err != nil {
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

// lower makes the module proof build the direct requirements of declared in the same
// versions, whatever else asks for newer ones, and forgets its indirect ones. It adds
// the versions by path.
func lower(proof, declared *modfile.File, versions map[string]string) error {
	for _, r := range slices.Clone(proof.Require) {
		if r.Indirect {
			proof.DropRequire(r.Mod.Path)
		}
	}
	for _, r := range declared.Require {
		if r.Indirect || r.Mod.Path == sys || r.Mod.Path == own {
			continue
		}
		versions[r.Mod.Path] = r.Mod.Version
		if err := proof.AddRequire(r.Mod.Path, r.Mod.Version); err != nil {
			return err
		}
		if err := proof.AddReplace(r.Mod.Path, "", r.Mod.Path, r.Mod.Version); err != nil {
			return err
		}
	}
	proof.Cleanup()
	return nil
}

// joinSums writes the known checksums of all these modules.
func joinSums(file string) error {
	var sums []byte
	for _, dir := range append([]string{"."}, declaring...) {
		content, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil {
			return err
		}
		sums = append(sums, content...)
	}
	return os.WriteFile(file, sums, 0o644)
}

// compare shows what the go command builds with the modfile, and fails if that
// is not what they declare.
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
