package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/elector-go/elector/internal/overlay"
)

// mutants are builds that differ from one time to the next, as edits of cmd dist.
var mutants = map[string]overlay.Edit{
	"timestamp": {File: "internal/dist/build.go", Old: `commit="+r.commit`, New: `commit="+time.Now().Format(time.RFC3339Nano)`},
	"path":      {File: "internal/dist/build.go", Old: `-trimpath -buildvcs=false`, New: `-buildvcs=false`},
	"mtime":     {File: "internal/dist/archive.go", Old: `ModTime: at,`, New: `ModTime: time.Now(),`},
}

// dist builds what make dist builds, for this machine, in two clones, and compares. It
// installs the package and runs the command in it. installed is the command as go
// install gets it.
func dist(root, dir, version, mutant, installed string) error {
	host := runtime.GOOS + "_" + runtime.GOARCH
	first, err := buildDist(root, filepath.Join(dir, "first"), version, mutant, 0o022, "TZ=UTC", "LC_ALL=C")
	if err != nil {
		return err
	}
	second, err := buildDist(root, filepath.Join(dir, "second, in a longer folder"), version, mutant, 0o077, "TZ=Asia/Kolkata", "LC_ALL=C.UTF-8", "GOAMD64=v3")
	if err != nil {
		return err
	}
	if err := same(first, second); err != nil {
		return err
	}
	if err := listed(first); err != nil {
		return err
	}

	name := "elector_" + version + "_" + host
	packed, err := unpack(first[name+".tar.gz"], name+"/elector")
	if err != nil {
		return err
	}
	binary := filepath.Join(dir, "elector")
	if err := os.WriteFile(binary, packed, 0o755); err != nil {
		return err
	}
	if err := says(binary, version); err != nil {
		return err
	}
	if err := billed(first[name+".cdx.json"], binary, version); err != nil {
		return err
	}
	if err := sameModules(binary, installed); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		fmt.Println("release: NOT RUN: the Debian package, which needs Linux")
		return nil
	}
	scratch := filepath.Join(dir, "scratch")
	said, err := exec.Command("dpkg-deb", "-x", filepath.Join(dir, "first", "dist", name+".deb"), scratch).CombinedOutput()
	if err != nil {
		return fmt.Errorf("dpkg-deb: %w\n%s", err, said)
	}
	for _, file := range []string{"usr/share/man/man1/elector-run.1.gz", "usr/share/doc/elector/copyright", "usr/share/bash-completion/completions/elector"} {
		if _, err := os.Stat(filepath.Join(scratch, file)); err != nil {
			return err
		}
	}
	return says(filepath.Join(scratch, "usr/bin/elector"), version)
}

// buildDist runs cmd dist in a clone below dir, with settings of a machine that must not
// matter, and returns the files.
func buildDist(root, dir, version, mutant string, umask int, settings ...string) (files map[string][]byte, err error) {
	fmt.Println("release: building", version, "in", dir)
	defer syscall.Umask(syscall.Umask(umask))
	clone, out := filepath.Join(dir, "clone"), filepath.Join(dir, "dist")
	if _, err := git(root, "clone", "--quiet", "--shared", ".", clone); err != nil {
		return nil, err
	}
	args := []string{"run"}
	if mutant != "" {
		edit, known := mutants[mutant]
		if !known {
			return nil, fmt.Errorf("no mutant %q; there are %q", mutant, slices.Sorted(maps.Keys(mutants)))
		}
		changes, err := overlay.Write(clone, dir, mutant, []overlay.Edit{edit})
		if err != nil {
			return nil, err
		}
		args = append(args, "-overlay", changes)
	}
	cmd := exec.Command("go", append(args, "./internal/dist", "-out", out, "-version", version, "-platforms", runtime.GOOS+"/"+runtime.GOARCH)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = clone, append(os.Environ(), settings...), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cmd dist in %s: %w", clone, err)
	}
	names, err := os.ReadDir(out)
	files = map[string][]byte{}
	for _, n := range names {
		content, err := os.ReadFile(filepath.Join(out, n.Name()))
		if err != nil {
			return nil, err
		}
		files[n.Name()] = content
	}
	return files, err
}

// same names the files in which two builds differ.
func same(first, second map[string][]byte) (err error) {
	names := maps.Clone(first)
	maps.Copy(names, second)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, before := first[name]
		b, after := second[name]
		switch {
		case !before || !after:
			err = errors.Join(err, fmt.Errorf("%s is in one build alone", name))
		case !bytes.Equal(a, b):
			err = errors.Join(err, fmt.Errorf("%s differs from one build to the next: %x, %x", name, sha256.Sum256(a), sha256.Sum256(b)))
		}
	}
	return err
}

// listed checks the checksums.
func listed(files map[string][]byte) error {
	var want string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "SHA256SUMS" {
			want += fmt.Sprintf("%x  %s\n", sha256.Sum256(files[name]), name)
		}
	}
	if got := string(files["SHA256SUMS"]); got != want || got == "" {
		return fmt.Errorf("SHA256SUMS has\n%sand the files have\n%s", got, want)
	}
	return nil
}

// unpack returns one file of a .tar.gz.
func unpack(archive []byte, name string) ([]byte, error) {
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if h.Name == name {
			return io.ReadAll(r)
		}
	}
}

// says checks the version that a binary prints.
func says(binary, version string) error {
	said, err := exec.Command(binary, "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", binary, err)
	}
	var is struct{ Version string }
	if err := json.Unmarshal(said, &is); err != nil || is.Version != version {
		return fmt.Errorf("%s is of version %q (%v), not %s", binary, is.Version, err, version)
	}
	return nil
}

// inside are the modules in a binary as go version -m lists them, and Go itself. Those of
// this repository have the version.
func inside(binary, version string) ([]string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	list := []string{"std " + info.GoVersion}
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path+"/", "github.com/elector-go/elector/") {
			m.Version = version
		}
		list = append(list, m.Path+" "+m.Version)
	}
	slices.Sort(list)
	return list, nil
}

// billed checks that a bill lists the modules of the binary, and no other.
func billed(bill []byte, binary, version string) error {
	want, err := inside(binary, version)
	if err != nil {
		return err
	}
	var has struct {
		Components []struct{ Name, Version string }
		Metadata   struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		SerialNumber string
	}
	if err := json.Unmarshal(bill, &has); err != nil {
		return err
	}
	if c := has.Metadata.Component; c.Name != "github.com/elector-go/elector/cmd/elector" || c.Version != version {
		return fmt.Errorf("the bill is of %s %s", c.Name, c.Version)
	}
	if has.Metadata.Timestamp != "" || has.SerialNumber != "" {
		return errors.New("the bill has a time or a serial number")
	}
	var got []string
	for _, c := range has.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	slices.Sort(got)
	return differ("the bill", got, "the binary", want)
}

// sameModules checks that go install gets what the archive has.
func sameModules(binary, installed string) error {
	ours, err := inside(binary, "")
	if err != nil {
		return err
	}
	theirs, err := inside(installed, "")
	if err != nil {
		return err
	}
	return differ("the archive's binary", ours, "go install's", theirs)
}

func differ(a string, as []string, b string, bs []string) (err error) {
	for _, x := range as {
		if !slices.Contains(bs, x) {
			err = errors.Join(err, fmt.Errorf("%s has %s, and %s does not", a, x, b))
		}
	}
	for _, x := range bs {
		if !slices.Contains(as, x) {
			err = errors.Join(err, fmt.Errorf("%s has %s, and %s does not", b, x, a))
		}
	}
	return err
}
