package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/diagnose"
	"github.com/elector-go/elector/internal/table"
)

// A runner runs parts side by side.
type runner struct {
	root   string
	race   error // why there is no race detector, or nil
	jobs   int
	within time.Duration // no part begins later, unless it is 0

	building  sync.Mutex    // held by the one that builds
	beginning sync.Mutex    // held by the one that begins next
	slots     chan int      // of those that run
	idle      chan struct{} // holds a value for each of those that are idle

	mutex   sync.Mutex
	running map[string]*watch
	ended   []outcome
	left    []string // the parts that did not begin
	built   map[string]func() (string, error)
}

type outcome struct {
	part
	err       error
	took, cpu time.Duration
}

// The tables of results are the variables of the environment that name their files.
const (
	suite  = "ELECTOR_TABLE"
	faults = "ELECTOR_FAULT_TABLE"
)

// folder is for what the runner makes.
func (r *runner) folder() string { return filepath.Join(r.root, "bin", "parts") }

func (r *runner) runAll(ctx context.Context, chosen []part) error {
	if err := os.MkdirAll(r.folder(), 0o755); err != nil {
		return err
	}
	for _, t := range []string{suite, faults} {
		if err := os.RemoveAll(filepath.Join(r.folder(), t)); err != nil {
			return err
		}
	}
	r.running, r.built = map[string]*watch{}, map[string]func() (string, error){}
	done := make(chan struct{})
	go r.report(done)
	begun := time.Now()
	processors := runtime.GOMAXPROCS(0)
	turns, busy := make(chan struct{}, cmp.Or(r.jobs, 4*processors)), make(chan struct{}, processors)
	r.idle = make(chan struct{}, 2)
	r.slots = make(chan int, cap(turns)+cap(busy)+cap(r.idle))
	for i := range cap(r.slots) {
		r.slots <- i
	}
	var all sync.WaitGroup
	for _, p := range chosen {
		turn := turns
		switch {
		case p.busy:
			turn = busy
		case p.idle:
			turn = r.idle
		}
		all.Go(func() {
			tooLate := func() bool { return r.within > 0 && time.Since(begun) > r.within }
			if !tooLate() {
				if _, err := r.program(ctx, p); err != nil {
					r.end(outcome{part: p, err: err}, nil)
					return
				}
			}
			turn <- struct{}{}
			defer func() { <-turn }()
			if !p.idle {
				r.await(ctx, processors)
			}
			if tooLate() {
				r.leave(p)
				return
			}
			r.runPart(ctx, p)
		})
	}
	all.Wait()
	close(done)
	return r.results(chosen)
}

// await lets parts begin one after another, and only while the processors have time for one
// more: what is tested on real stores waits for answers as short as those of users.
func (r *runner) await(ctx context.Context, processors int) {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	for ctx.Err() == nil {
		r.mutex.Lock()
		few := len(r.running)-len(r.idle) < 2*processors
		r.mutex.Unlock()
		before, known := idleTime()
		if few || !known {
			return
		}
		const look = time.Second
		time.Sleep(look)
		if now, _ := idleTime(); now-before > look*time.Duration(processors)/8 {
			return
		}
	}
}

// report prints each minute how far the parts are.
func (r *runner) report(done <-chan struct{}) {
	begun := time.Now()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		select {
		case <-done:
			return
		case <-minute.C:
		}
		r.mutex.Lock()
		fmt.Printf("after %.0f min, %d parts have ended, and these run:\n", time.Since(begun).Minutes(), len(r.ended))
		for name, w := range r.running {
			fmt.Printf("    %s: %s\n", name, w.progress())
		}
		r.mutex.Unlock()
	}
}

// runPart runs a part whose program is built.
func (r *runner) runPart(ctx context.Context, p part) {
	if ctx.Err() != nil {
		r.end(outcome{part: p, err: errors.New("interrupted")}, nil)
		return
	}
	w := newWatch()
	r.mutex.Lock()
	r.running[p.name] = w
	r.mutex.Unlock()
	slot := <-r.slots
	defer func() { r.slots <- slot }()
	cmd := r.command(ctx, p)
	cmd.Env = append(cmd.Env, r.ports(slot))
	err := w.run(ctx, cmd)
	if err != nil && w.passed+w.failed == 0 {
		if line := diagnose.Line(w.failures()); line != "" {
			err = fmt.Errorf("%s: %w", line, err)
		}
	}
	r.end(outcome{part: p, err: err, took: w.took(), cpu: w.cpu}, w)
}

// short returns the parts that do not take many minutes, with the building of their server,
// and notes that the others are left out.
func (r *runner) short(chosen []part) (short []part) {
	for _, p := range chosen {
		if p.long || slices.ContainsFunc(slow, p.of) {
			r.leave(p)
		} else {
			short = append(short, p)
		}
	}
	return short
}

// leave notes a part that is left out.
func (r *runner) leave(p part) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.left = append(r.left, p.name)
}

// ports returns the variable that gives the servers of parts that run at the same time
// ports that differ.
func (r *runner) ports(slot int) string {
	const first, count = 20000, 6000
	width := count / cap(r.slots)
	return fmt.Sprintf("ELECTOR_TEST_PORTS=%d-%d", first+slot*width, first+(slot+1)*width-1)
}

// end prints what came out of a part.
func (r *runner) end(o outcome, w *watch) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.running, o.name)
	r.ended = append(r.ended, o)
	if o.err == nil {
		fmt.Printf("ok    %-28s %6.1f s, of a processor %6.1f s, %d tests\n", o.name, o.took.Seconds(), o.cpu.Seconds(), w.passed)
		return
	}
	fmt.Printf("FAIL  %-28s %6.1f s: %v\n", o.name, o.took.Seconds(), o.err)
	if w != nil {
		fmt.Print(w.failures())
	}
}

// command returns the command that runs the part and prints its events as JSON.
func (r *runner) command(ctx context.Context, p part) *exec.Cmd {
	var flags []string
	if p.run != "" {
		flags = append(flags, "-run="+p.run)
	}
	if p.skip != "" {
		flags = append(flags, "-skip="+p.skip)
	}
	var cmd *exec.Cmd
	if p.shared {
		program, _ := r.program(ctx, p)
		for i := range flags {
			flags[i] = "-test." + flags[i][1:]
		}
		args := append([]string{"tool", "test2json", "-t", "-p", p.name, program, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=0"}, flags...)
		cmd = exec.Command("go", append(args, p.args...)...)
		cmd.Dir = filepath.Join(r.root, p.dir(), p.packages[0])
	} else {
		args := append([]string{"test", "-json", "-timeout=0"}, flags...)
		if !p.cached {
			args = append(args, "-count=1")
		}
		args = append(args, r.buildFlags(p)...)
		args = append(args, p.packages...)
		if len(p.args) > 0 {
			args = append(append(args, "-args"), p.args...)
		}
		cmd = exec.Command("go", args...)
		cmd.Dir = filepath.Join(r.root, p.dir())
	}
	cmd.Env = os.Environ()
	if p.table != "" {
		cmd.Env = append(cmd.Env, p.table+"="+filepath.Join(r.folder(), p.table))
	}
	return cmd
}

func (r *runner) buildFlags(p part) (flags []string) {
	if r.race == nil && !p.plain {
		flags = append(flags, "-race")
	}
	if p.tags != "" {
		flags = append(flags, "-tags="+p.tags)
	}
	if p.modfile != "" {
		flags = append(flags, "-modfile="+filepath.Join(r.root, p.modfile))
	}
	return flags
}

// program builds the test program of a part that is shared, once, and one program at a
// time: the go command keeps all processors busy. Other parts have none.
func (r *runner) program(ctx context.Context, p part) (string, error) {
	if !p.shared {
		return "", nil
	}
	r.mutex.Lock()
	build := r.built[p.build()]
	if build == nil {
		file := filepath.Join(r.folder(), strings.Map(func(c rune) rune {
			if strings.ContainsRune("/|., ", c) {
				return '-'
			}
			return c
		}, p.build())+".test")
		build = sync.OnceValues(func() (string, error) {
			r.building.Lock()
			defer r.building.Unlock()
			args := append([]string{"test", "-c", "-o", file}, r.buildFlags(p)...)
			cmd := exec.CommandContext(ctx, "go", append(args, p.packages...)...)
			cmd.Dir = filepath.Join(r.root, p.dir())
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", notBuilt(err, out)
			}
			return file, nil
		})
		r.built[p.build()] = build
	}
	r.mutex.Unlock()
	return build()
}

func notBuilt(err error, printed []byte) error {
	if line := diagnose.Line(string(printed)); line != "" {
		return fmt.Errorf("it does not build: %s\n%s", line, printed)
	}
	return fmt.Errorf("it does not build: %w\n%s", err, printed)
}

// results prints the tables and the times, and returns what is wrong.
func (r *runner) results(chosen []part) error {
	var wrong []string
	for _, t := range []string{suite, faults} {
		results, err := table.Read(filepath.Join(r.folder(), t))
		if err != nil {
			return err
		}
		var stores []string
		for _, p := range chosen {
			if p.table == t && !slices.Contains(r.left, p.name) {
				stores = append(stores, p.columns...)
			}
		}
		if len(stores) == 0 {
			continue
		}
		name := strings.ToLower(strings.TrimPrefix(t, "ELECTOR_"))
		fmt.Printf("\n%s:\n", name)
		if !results.Write(os.Stdout) {
			wrong = append(wrong, "cases in "+name)
		}
		for _, store := range stores {
			if !results.Has(store) {
				wrong = append(wrong, store+", which is not in "+name)
			}
		}
	}
	slices.SortFunc(r.ended, func(a, b outcome) int { return cmp.Compare(b.took, a.took) })
	fmt.Println("\nthe longest parts:")
	for _, o := range r.ended[:min(len(r.ended), 12)] {
		fmt.Printf("%7.1f s, of a processor %6.1f s  %s\n", o.took.Seconds(), o.cpu.Seconds(), o.name)
	}
	for _, o := range r.ended {
		if o.err != nil {
			wrong = append(wrong, o.name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d parts failed: %s", len(wrong), len(chosen), strings.Join(wrong, ", "))
	}
	return nil
}

// An event is a line that go test -json prints.
type event struct{ Action, Package, Test, Output string }

// events reads what go test -json prints, and gives each line that is none as output.
func events(in *bufio.Reader, give func(event)) {
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(bytes.TrimRight(line, "\n")) + "\n"}
			}
			give(e)
		}
		if err != nil {
			return
		}
	}
}
