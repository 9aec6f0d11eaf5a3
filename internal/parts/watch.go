package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A watch follows a part's tests, and ends them if they stand still: if no test begins or
// ends and nothing is printed while they use next to no processor for restsAtMost, or use
// a processor for computesAtMost. A machine that is slow or under load makes neither
// happen sooner: tests that wait for a processor rest for no longer than a moment at a
// time, and computing is counted in processor time.
type watch struct {
	begun time.Time
	cpu   time.Duration // set when the process has ended

	mutex  sync.Mutex
	events int
	passed int
	last   string            // printed
	open   map[string]string // the output of tests that have not passed, by package and test
	order  []string          // of open
	failed int
	still  stillness
}

const (
	restsAtMost    = 10 * time.Minute
	computesAtMost = time.Hour
	glance         = 10 * time.Second
	// resting tests use less than this share of a processor between two glances.
	resting = 0.005
)

// stillness is how long, and for how much processor time, nothing has happened.
type stillness struct {
	rested, computed time.Duration
	events           int
	cpu              time.Duration
}

// glance takes what was seen at one time, after an interval, and returns why the tests
// stand still, or "".
func (s *stillness) glance(interval time.Duration, events int, cpu time.Duration) string {
	used := max(0, cpu-s.cpu) // of children that have ended nothing may be left
	s.cpu = cpu
	switch {
	case events != s.events:
		s.events, s.rested, s.computed = events, 0, 0
		return ""
	case used.Seconds() > resting*interval.Seconds():
		s.rested = 0
		s.computed += used
	default:
		s.rested += interval
	}
	switch {
	case s.rested >= restsAtMost:
		return fmt.Sprintf("no test began or ended, nothing was printed and no processor was used for %v", restsAtMost)
	case s.computed >= computesAtMost:
		return fmt.Sprintf("no test began or ended and nothing was printed for %v of a processor", computesAtMost)
	}
	return ""
}

func newWatch() *watch { return &watch{begun: time.Now(), open: map[string]string{}} }

func (w *watch) took() time.Duration { return time.Since(w.begun) }

// run runs a command that prints a test's events as JSON, in a process group of its own.
// It returns nil if tests ran and all of them passed.
func (w *watch) run(ctx context.Context, cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = ownGroup()
	w.begun = time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		events(bufio.NewReaderSize(out, 1<<20), w.see)
	}()
	stood := w.guard(ctx, cmd.Process.Pid, read)
	err = cmd.Wait()
	w.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case stood != "":
		return errors.New(stood)
	case err != nil && w.failed == 0:
		return fmt.Errorf("%w, and no test failed", err)
	case err != nil:
		return fmt.Errorf("%d tests failed", w.failed)
	case w.passed == 0:
		return errors.New("it ran no test")
	}
	return nil
}

// guard returns when everything is read. It ends the process group if ctx ends, or if the
// tests stand still, and returns why.
func (w *watch) guard(ctx context.Context, group int, read <-chan struct{}) (stood string) {
	look := time.NewTicker(glance)
	defer look.Stop()
	for {
		select {
		case <-read:
			return stood
		case <-ctx.Done():
			signalGroup(group, syscall.SIGINT)
			<-read
			return stood
		case <-look.C:
		}
		if stood != "" { // it was told to print where it is, and to end, a while ago
			signalGroup(group, syscall.SIGKILL)
			continue
		}
		cpu, ok := processorTime(group)
		if !ok {
			continue
		}
		w.mutex.Lock()
		stood = w.still.glance(glance, w.events, cpu)
		w.mutex.Unlock()
		if stood != "" {
			signalGroup(group, syscall.SIGQUIT)
		}
	}
}

// see takes an event of the tests.
func (w *watch) see(e event) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.events++
	id := e.Package + "\t" + e.Test
	switch e.Action {
	case "output", "build-output":
		if text := strings.TrimSpace(e.Output); text != "" && !strings.HasPrefix(text, "=== ") {
			w.last = text
		}
		if _, known := w.open[id]; !known {
			w.order = append(w.order, id)
		}
		w.open[id] += e.Output
		const most = 1 << 20
		if kept := w.open[id]; len(kept) > 2*most {
			w.open[id] = "…" + kept[len(kept)-most:]
		}
	case "pass", "skip":
		if e.Test != "" && e.Action == "pass" {
			w.passed++
		}
		delete(w.open, id)
	case "fail":
		if e.Test != "" {
			w.failed++
		}
	}
}

// failures is what tests printed that have not passed.
func (w *watch) failures() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var b strings.Builder
	for _, id := range w.order {
		b.WriteString(w.open[id])
	}
	if b.Len() == 0 {
		return ""
	}
	return "    | " + strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", "\n    | ") + "\n"
}

// progress says how far the tests are.
func (w *watch) progress() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.events == 0 {
		return "is being built"
	}
	return fmt.Sprintf("%d tests passed after %.0f s; last: %.100s", w.passed, w.took().Seconds(), w.last)
}
