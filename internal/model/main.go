// Command model checks the models of the protocol, spec/election.pml and
// spec/partition.pml, with spin: the good model must hold in every state within its
// bounds, each mutant of it must be caught by the property named for it, and what the
// good model claims to allow must be seen to happen. It also checks that
// spec/README.md names code that exists.
//
//	model            the bounds of CI
//	model -large     larger ones too, some minutes
//	model -show NAME replays the example, or the violation, that one check finds
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	large := flag.Bool("large", false, "check at larger bounds too")
	show := flag.String("show", "", "replay what the check of this `name` finds")
	flag.Parse()
	if err := run(*large, *show); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run(large bool, show string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	spec := filepath.Join(root, "spec")
	if err := checkPage(root); err != nil {
		return err
	}
	if err := needTools(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "elector-model")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if show != "" {
		i := slices.IndexFunc(searches, func(c search) bool { return c.name == show })
		if i < 0 {
			return fmt.Errorf("there is no check %q; the names are in the first column of what make model prints", show)
		}
		return replay(spec, filepath.Join(dir, show), searches[i])
	}
	return runAll(spec, dir, large)
}

// runAll runs the checks, as many at a time as there are processors, and prints
// a line for each in their order, with the processor time that it took.
func runAll(spec, dir string, large bool) error {
	started := time.Now()
	var selected []search
	for _, c := range searches {
		if large || !c.large {
			selected = append(selected, c)
		}
	}
	results := make([]chan result, len(selected))
	next := make(chan int)
	for range runtime.NumCPU() {
		go func() {
			for i := range next {
				c := selected[i]
				results[i] <- c.run(spec, filepath.Join(dir, c.name))
			}
		}()
	}
	for i := range selected {
		results[i] = make(chan result, 1)
	}
	go func() {
		defer close(next)
		for i := range selected {
			next <- i
		}
	}()
	const line = "%-22s %-17s %-17s %9s %8s  %s\n"
	fmt.Printf(line, "model", "expected", "found", "states", "seconds", "")
	wrong := 0
	var spent time.Duration
	for i, c := range selected {
		r := <-results[i]
		spent += r.time
		note := c.about
		if r.found != c.expect {
			wrong++
			note = "NOT AS EXPECTED: " + note
		}
		fmt.Printf(line, c.name, c.expect, r.found, r.states, fmt.Sprintf("%.1f", r.time.Seconds()), note)
		if r.detail != "" {
			fmt.Println(r.detail)
		}
	}
	fmt.Printf("%d checks in %.0f s, with %.0f s of processor time\n", len(selected), time.Since(started).Seconds(), spent.Seconds())
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks are not as expected; go run ./internal/model -show NAME replays what one of them finds", wrong, len(selected))
	}
	return nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("run this inside the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// needTools installs spin and a C compiler where they are missing and it may.
func needTools() error {
	var packages []string
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			packages = append(packages, tool)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	missing := strings.Join(packages, " and ")
	advice := "apt-get install " + strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%s missing; install it: on Debian and Ubuntu, as root: %s", missing, advice)
	}
	fmt.Fprintf(os.Stderr, "model: %s missing: %s\n", missing, advice)
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if _, err := apt(install...); err == nil {
		return nil
	}
	out, err := apt("update")
	if err == nil {
		out, err = apt(install...)
	}
	if err != nil {
		return fmt.Errorf("%s missing, and %s failed: %w\n%s", missing, advice, err, out)
	}
	return nil
}

func apt(arguments ...string) ([]byte, error) {
	cmd := exec.Command("apt-get", arguments...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}

// replay prints the steps that lead to what a check finds.
func replay(spec, dir string, c search) error {
	r := c.run(spec, dir)
	fmt.Printf("%s: expected %s, found %s\n", c.name, c.expect, r.found)
	if r.detail != "" {
		return errors.New(r.detail)
	}
	if r.found == holds {
		fmt.Println("There is nothing to replay.")
		return nil
	}
	cmd := exec.Command("spin", append(c.arguments(), "-t", c.model)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		return fmt.Errorf("spin cannot replay the trail: %w", err)
	}
	for step := range strings.Lines(string(out)) {
		if strings.Contains(step, "spin: ") || strings.Contains(step, "#processes") {
			break // what follows is the state at the end, in spin's own words
		}
		fmt.Print(step)
	}
	return nil
}
