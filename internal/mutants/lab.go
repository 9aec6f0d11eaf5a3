package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/overlay"
)

// A lab makes mutants and runs cases on them.
type lab struct {
	root string // of the module
	dir  string // for what is built
	seed uint64

	folder string      // of the caches
	caches chan *cache // for the builds at the same time

	mutex sync.Mutex
	built map[string]func() (string, error) // the unbroken tests by package, built once
}

// A result is what became of a mutant; err is nil if it was caught.
type result struct {
	err    error
	output string
	time   time.Duration
}

func newLab(dir string, seed uint64, jobs int) (*lab, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("run this inside the module: %w", err)
	}
	l := &lab{root: strings.TrimSpace(string(out)), dir: dir, seed: seed, built: map[string]func() (string, error){}}
	l.folder, l.caches, err = newCaches(jobs)
	return l, err
}

// close deletes what the lab has made.
func (l *lab) close() error { return errors.Join(os.RemoveAll(l.dir), os.RemoveAll(l.folder)) }

// run makes a mutant, and runs its case on it and on the unbroken code.
func (l *lab) run(number int, m mutant) (r result) {
	started := time.Now()
	defer func() { r.time = time.Since(started) }()
	unbroken, err := l.unbroken(m)
	if err != nil {
		return result{err: err}
	}
	list, err := overlay.Write(l.root, l.dir, fmt.Sprintf("mutant%d", number), m.changes())
	if err != nil {
		return result{err: err}
	}
	broken := filepath.Join(l.dir, fmt.Sprintf("mutant%d.test", number))
	if err := l.buildMutant(broken, m, list); err != nil {
		return result{err: fmt.Errorf("the mutant does not build, which proves nothing: %w", err)}
	}
	defer os.Remove(broken)
	passed, failed, output := l.try(broken, m)
	switch {
	case passed:
		return result{err: errors.New("it survives: the case passes"), output: output}
	case !failed:
		return result{err: fmt.Errorf("the case neither passes nor fails:\n%s", last(output)), output: output}
	}
	if passed, _, also := l.try(unbroken, m); !passed {
		return result{err: fmt.Errorf("the unbroken code fails too:\n%s", last(also)), output: output}
	}
	return result{output: output}
}

// unbroken builds the tests of a package as they are, once.
func (l *lab) unbroken(m mutant) (string, error) {
	l.mutex.Lock()
	pkg := path.Join(m.module, m.pkg)
	build := l.built[pkg]
	if build == nil {
		file := filepath.Join(l.dir, fmt.Sprintf("unbroken%d.test", len(l.built)))
		build = sync.OnceValues(func() (string, error) { return file, l.build(nil, file, m) })
		l.built[pkg] = build
	}
	l.mutex.Unlock()
	return build()
}

// buildMutant builds with a cache of which nothing is left in the user's.
func (l *lab) buildMutant(to string, m mutant, list string) error {
	c := <-l.caches
	defer func() { l.caches <- c }()
	if err := c.prepare(path.Join(m.module, m.pkg)); err != nil {
		return err
	}
	return l.build([]string{"GOCACHE=" + c.dir}, to, m, "-overlay", list)
}

func (l *lab) build(environment []string, to string, m mutant, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-o", to}, flags...)
	c := exec.Command("go", append(args, m.pkg)...)
	c.Dir, c.Env = filepath.Join(l.root, m.module), append(os.Environ(), environment...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// try runs a mutant's case, and reports whether it passed or failed by its own
// name; neither if it was not run, hung or took everything down.
func (l *lab) try(binary string, m mutant) (passed, failed bool, output string) {
	args := []string{"-test.v", "-test.timeout=60s", "-test.run=" + m.pattern()}
	if m.pkg == simulation { // no other has a seed
		args = append(args, "-seed="+strconv.FormatUint(l.seed, 10))
	}
	if m.alone {
		args = append(args, "-alone")
	}
	if m.pkg == guardian { // most of these end with a wait in vain
		args = append(args, "-patience=6s")
	}
	c := exec.Command(binary, args...)
	c.Dir = filepath.Join(l.root, m.module, m.pkg)
	out, err := c.CombinedOutput()
	output = string(out)
	line := ": " + m.test() + " ("
	passed = err == nil && strings.Contains(output, "--- PASS"+line)
	failed = err != nil && strings.Contains(output, "--- FAIL"+line) && (!m.alone || strings.Contains(output, ": the specification: "))
	return passed, failed, output
}

// last is the end of a text, for an error.
func last(text string) string {
	const most = 4000
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
