// Command release rehearses a release of this repository: it puts every public
// module, as the commit HEAD has it, at one version into a module proxy in a
// temporary folder, and there does what users do: go get, go install, and what
// the README begins with. After that it does in each module of a clone what
// contributors do, and builds in two clones what make dist builds, for this machine:
// both must be the same to the last byte. At the end it prints the tags.
//
// Usage: go run ./cmd/release -version v0.1.0 [-mutant timestamp]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/elector-go/elector/internal/modules"
)

func main() {
	version := flag.String("version", "", "the version to rehearse, as v0.1.0")
	root := flag.String("root", "../..", "the repository")
	mutant := flag.String("mutant", "", "a build that differs from one time to the next, which must be found")
	flag.Parse()
	if *version == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*root, *version, *mutant); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root, version, mutant string) error {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := logged(root, version); err != nil {
		return err
	}
	u, tags, err := rehearse(root, dir, version)
	if err != nil {
		return err
	}
	if err := plain(filepath.Join(dir, "clone")); err != nil {
		return fmt.Errorf("in a clone: %w", err)
	}
	if err := u.readme(); err != nil {
		return err
	}
	if err := dist(filepath.Join(dir, "clone"), dir, version, mutant, filepath.Join(dir, "bin", "elector")); err != nil {
		return err
	}
	fmt.Println("release: all of it works. The tags are", strings.Join(tags, " "))
	return nil
}

// logged returns an error unless the changelog has a section for the version.
func logged(root, version string) error {
	text, err := git(root, "show", "HEAD:CHANGELOG.md")
	if err != nil {
		return err
	}
	section := "\n## [" + strings.TrimPrefix(version, "v") + "] - "
	if !strings.Contains(text, section) {
		return fmt.Errorf("CHANGELOG.md has no line that begins with %q; move what is unreleased there", section[1:])
	}
	return nil
}

// rehearse gets every public module as a user does, and returns that user and
// the tags.
func rehearse(root, dir, version string) (u *user, tags []string, err error) {
	changed, err := git(root, "status", "--porcelain")
	if err != nil {
		return nil, nil, err
	}
	if changed != "" {
		fmt.Printf("release: what is not committed takes no part:\n%s", changed)
	}
	clone := filepath.Join(dir, "clone")
	if _, err := git(root, "clone", "--quiet", "--shared", ".", clone); err != nil {
		return nil, nil, err
	}
	public, err := modules.Public(clone)
	if err != nil {
		return nil, nil, err
	}
	p := &proxy{clone: clone, dir: filepath.Join(dir, "proxy"), version: version}
	for _, m := range public {
		if err := p.add(m); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		tags = append(tags, p.tag(m))
	}
	u, err = newUser(dir, p, public)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range public {
		if err := u.try(m); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	return u, tags, nil
}

// plain runs the plain go commands in each public module of a clone. make test runs
// go test.
func plain(clone string) error {
	public, err := modules.Public(clone)
	if err != nil {
		return err
	}
	for _, m := range public {
		for _, verb := range []string{"build", "vet"} {
			fmt.Printf("release: in %s of a clone: go %s ./...\n", m.Dir, verb)
			if _, err := modules.Go(filepath.Join(clone, filepath.FromSlash(m.Dir)), nil, verb, "./..."); err != nil {
				return fmt.Errorf("%s: %w", m.Dir, err)
			}
		}
	}
	return nil
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	return string(out), err
}
