// Command api compares what the public packages export with the baseline in
// api.txt, prints what changed, and fails if anything did. With -update it
// writes the baseline anew. It also prints how many features package elector has, and fails
// if there are more than a newcomer can take in.
//
// A line of the baseline is one feature of one package on Linux, in the form
// of Go's own api/go1.txt. A line that is gone breaks programs that use it; so
// does a new method of an interface that they implement.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/modules"
)

const baseline = "internal/api/api.txt"

// root is the package with the limit most: methods and fields count too.
const (
	root = "github.com/elector-go/elector"
	most = 170
)

func main() {
	update := flag.Bool("update", false, "write the baseline anew")
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(update bool) error {
	public, err := modules.Public(".")
	if err != nil {
		return err
	}
	var now []string
	for _, m := range public {
		if strings.HasPrefix(m.Dir, "cmd/") {
			continue // commands export nothing
		}
		features, err := exported(m.Dir)
		if err != nil {
			return err
		}
		now = append(now, features...)
	}
	slices.Sort(now)
	before, err := os.ReadFile(baseline)
	if err != nil && !update {
		return err
	}
	changes := compare(strings.Split(strings.TrimSpace(string(before)), "\n"), now)
	for _, line := range changes {
		fmt.Println(line)
	}
	n := count(now, root)
	fmt.Printf("package elector exports %d names, of at most %d\n", n, most)
	if n > most {
		return fmt.Errorf("package elector exports %d names, more than %d; move what few programs need to a package of its own", n, most)
	}
	if update {
		return os.WriteFile(baseline, []byte(strings.Join(now, "\n")+"\n"), 0o644)
	}
	if len(changes) > 0 {
		return fmt.Errorf("the public API differs from %s in %d lines; if that is intended, run make api, and say so in CHANGELOG.md", baseline, len(changes))
	}
	return nil
}

// count returns how many features a package has.
func count(features []string, pkg string) (n int) {
	for _, line := range features {
		if strings.HasPrefix(line, "pkg "+pkg+", ") {
			n++
		}
	}
	return n
}

// compare returns the lines that are gone, with a minus, and the new ones, with
// a plus.
func compare(before, now []string) (changes []string) {
	for _, line := range before {
		if line != "" && !slices.Contains(now, line) {
			changes = append(changes, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			changes = append(changes, "+ "+line)
		}
	}
	return changes
}
