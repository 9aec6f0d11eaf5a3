// Command dist builds a release of the command elector into a folder: for each
// platform a static binary in an archive with its man pages, completions and licences,
// and a bill of the modules in it; for Linux a Debian package and an image for
// containers too; and the checksums of all. The same commit and the same release of Go
// give the same bytes, in any folder and at any time.
//
// Usage: go run ./internal/dist -out bin/dist [-version v0.1.0] [-platforms linux/amd64,…]
//
// The times in it are SOURCE_DATE_EPOCH, by default the time of the commit.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const all = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

func main() {
	out := flag.String("out", "", "the folder to write into, which must be empty or missing")
	version := flag.String("version", "", "the version; by default what git describe says of the commit")
	platforms := flag.String("platforms", all, "what to build for; this machine's platform must be among them")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*out, *version, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// A release is what is built, and from what.
type release struct {
	root    string // of the repository
	out     string
	scratch string // a folder that is removed at the end
	version string
	commit  string
	time    time.Time
}

// A platform is a system and an architecture, as Go names them.
type platform struct{ system, arch string }

func (p platform) String() string { return p.system + "/" + p.arch }

// name is the beginning of the names of a platform's files.
func (r *release) name(p platform) string {
	return "elector_" + r.version + "_" + p.system + "_" + p.arch
}

func run(out, version string, names []string) error {
	host := runtime.GOOS + "/" + runtime.GOARCH
	if !slices.Contains(names, host) {
		return fmt.Errorf("%s is not among the platforms %q: its binary writes the man pages", host, names)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
		return fmt.Errorf("%s must be empty: %d files, %v", out, len(files), err)
	}
	scratch, err := os.MkdirTemp("", "dist")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := &release{root: ".", out: out, scratch: scratch}
	if err := r.identify(version); err != nil {
		return err
	}
	fmt.Println("dist: version", r.version, "of commit", r.commit)
	binaries := map[string]string{}
	for _, name := range names {
		system, arch, _ := strings.Cut(name, "/")
		fmt.Println("dist: building for", name)
		if binaries[name], err = r.build(platform{system, arch}); err != nil {
			return err
		}
	}
	help, err := r.help(binaries[host])
	if err != nil {
		return err
	}
	for _, name := range names {
		system, arch, _ := strings.Cut(name, "/")
		if err := r.pack(platform{system, arch}, binaries[name], help); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return r.sums()
}

// pack writes all files of a platform.
func (r *release) pack(p platform, binary string, help []file) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	others, err := r.licenses(p)
	if err != nil {
		return err
	}
	unit, err := os.ReadFile(filepath.Join(r.root, "cmd/elector/examples/invoices.service"))
	if err != nil {
		return err
	}
	files := append([]file{
		{"elector", 0o755, content},
		{"LICENSE", 0o644, license},
		{"LICENSES-OF-OTHERS", 0o644, others},
		{"examples/invoices.service", 0o644, unit},
	}, help...)
	if err := r.archive(p, files); err != nil {
		return err
	}
	if err := r.bill(p, binary); err != nil {
		return err
	}
	if p.system != "linux" {
		return nil
	}
	if err := r.debian(p, files); err != nil {
		return err
	}
	return r.image(p, files)
}
