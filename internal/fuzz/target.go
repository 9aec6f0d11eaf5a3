package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A target is a fuzz function of a package.
type target struct{ pkg, name, dir string }

// String leaves out where the module comes from.
func (t target) String() string {
	parts := strings.SplitN(t.pkg, "/", 4)
	return parts[len(parts)-1] + "." + t.name
}

// targets finds the fuzz functions of a module. It builds the tests of those
// packages that have any.
func targets(ctx context.Context, module string) ([]target, error) {
	dirs, err := directories(ctx, module)
	if err != nil || len(dirs) == 0 {
		return nil, err
	}
	args := []string{"test", "-json", "-list", "^Fuzz"}
	for pkg := range dirs {
		args = append(args, pkg)
	}
	slices.Sort(args[4:])
	out, err := output(ctx, module, args...)
	if err != nil {
		return nil, err
	}
	var all []target
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct{ Action, Package, Output string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if name := strings.TrimSpace(e.Output); e.Action == "output" && fuzzName.MatchString(name) {
			all = append(all, target{e.Package, name, dirs[e.Package]})
		}
	}
}

var fuzzName = regexp.MustCompile(`^Fuzz\w*$`)

// directories are those of the packages in whose tests there may be a fuzz
// function: go test -list would build the tests of all others as well.
func directories(ctx context.Context, module string) (map[string]string, error) {
	out, err := output(ctx, module, "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, err
		}
		for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			if bytes.Contains(text, []byte("testing.F")) {
				dirs[p.ImportPath] = p.Dir
			}
		}
	}
}

func output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	var printed bytes.Buffer
	c.Stderr = &printed
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s%s", strings.Join(args, " "), dir, err, out, printed.Bytes())
	}
	return out, nil
}

// A result is what became of a target.
type result struct {
	target      target
	time        time.Duration
	executions  int
	interesting int // inputs that went somewhere new
	failed      bool
	idle        bool   // nothing failed, and nothing was executed either
	input       string // the file with the input that failed, if there is one
	output      string
}

func (r result) verdict() string {
	switch {
	case r.input != "":
		return "FAILED: " + r.input
	case r.idle:
		return "FAILED: it executed nothing; the corpus alone takes time, give it more"
	case r.failed:
		return "FAILED"
	}
	return "clean"
}

// run runs a target. It gives up when that takes minutes longer than it should:
// an input hangs then.
func (t target) run(ctx context.Context, limit time.Duration) result {
	const patience = 5 * time.Minute // to build, and to minimize what was found
	started := time.Now()
	c := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+limit.String(), "-timeout="+(limit+patience).String(), ".")
	c.Dir = t.dir
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // the go command ends what it started
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	r := read(string(out), err != nil, limit)
	r.target, r.time = t, time.Since(started)
	if r.input == "" {
		return r
	}
	// One that was kept in the build cache, and fails since the code was
	// changed, is not copied.
	kept := strings.Replace(r.input, "testdata/fuzz", "fuzz/"+t.pkg, 1)
	r.input = filepath.Join(t.dir, r.input)
	if _, err := os.Stat(r.input); err != nil {
		cache, _ := output(ctx, t.dir, "env", "GOCACHE")
		r.input = filepath.Join(strings.TrimSpace(string(cache)), kept)
	}
	return r
}

var (
	progress = regexp.MustCompile(`(?m)^fuzz: elapsed: .*, execs: (\d+) .*, new interesting: (\d+) `)
	written  = regexp.MustCompile(`Failing input written to (\S+)`)
	seed     = regexp.MustCompile(`failure while testing seed corpus entry: (Fuzz\w+)/([0-9a-f]{16}\S*)`)

	// overrun is what Go before 1.27 may say of a target that it ends because
	// its time is over: https://go.dev/issue/75804. Nothing else is printed then,
	// and there is no input.
	overrun = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \((\d+\.\d+)s\)\n    context deadline exceeded\nFAIL\n`)
)

// read makes a result of what go test has printed.
func read(output string, failed bool, limit time.Duration) result {
	r := result{output: output, failed: failed}
	if all := progress.FindAllStringSubmatch(output, -1); len(all) > 0 {
		last := all[len(all)-1]
		r.executions, _ = strconv.Atoi(last[1])
		r.interesting, _ = strconv.Atoi(last[2])
	}
	if m := written.FindStringSubmatch(output); m != nil {
		r.input = m[1]
	} else if m := seed.FindStringSubmatch(output); m != nil {
		r.input = filepath.Join("testdata", "fuzz", m[1], m[2])
	}
	if m := overrun.FindStringSubmatch(output); failed && m != nil && r.input == "" {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		r.failed = seconds < limit.Seconds()
	}
	if !r.failed && r.executions == 0 {
		r.failed, r.idle = true, true
	}
	return r
}
