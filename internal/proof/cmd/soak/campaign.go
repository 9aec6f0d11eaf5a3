package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/ledger"
	"github.com/elector-go/elector/internal/proof/child"
)

// grace is how long a campaign may take to end, beyond its length or after a signal.
const grace = 10 * time.Minute

// campaign runs a campaign and returns its entry in the ledger, nil if it was cut off.
// Nothing stays of it but the entry, and its folder if it did not pass.
func (s *soak) campaign(ctx context.Context, seed uint64, length time.Duration) (*ledger.Entry, error) {
	before, _, err := ledger.Read(s.ledger)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, fmt.Sprintf("%s%06d", prefix, seed))
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return nil, err
	}
	died := s.start(ctx, dir, seed, length)
	after, _, err := ledger.Read(s.ledger)
	if err != nil {
		return nil, err
	}
	var e *ledger.Entry
	switch {
	case len(after) > len(before):
		e = &after[len(after)-1]
	case ctx.Err() == nil:
		e = &ledger.Entry{Time: time.Now(), Commit: "unknown", Seed: seed, Duration: length, Problem: fmt.Sprintf("it ended without a line in the ledger: %v", died)}
		if err := ledger.Append(s.ledger, *e); err != nil {
			return nil, err
		}
	}
	found, err := violations(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		fmt.Fprintf(s.out, "VIOLATION with seed %d: %s\n", seed, path)
	}
	switch {
	case e != nil && e.Passed():
		s.passed++
		err = os.RemoveAll(dir)
	case e != nil:
		s.unpassed++
		fmt.Fprintf(s.out, "seed %d did not pass: %.300s; see %s\n", seed, e.Problem, dir)
	case len(found) == 0:
		fmt.Fprintf(s.out, "seed %d was cut off and is not counted\n", seed)
		err = os.RemoveAll(dir)
	default:
		s.unpassed++
		fmt.Fprintf(s.out, "seed %d was cut off and is not counted, and yet something was found; see %s\n", seed, dir)
	}
	return e, errors.Join(err, s.prune())
}

// start runs the program for a campaign and blocks until it has ended. The end of ctx
// interrupts it; then, and after its time, it has grace.
func (s *soak) start(ctx context.Context, dir string, seed uint64, length time.Duration) (err error) {
	temporary, err := os.MkdirTemp("", "elector-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }() // whatever it leaves
	if err := os.Chmod(temporary, 0o755); err != nil {                 // PostgreSQL runs as a user of its own
		return err
	}
	printed, err := os.Create(filepath.Join(dir, "chaos.txt"))
	if err != nil {
		return err
	}
	defer printed.Close()
	cmd := exec.Command(s.program, "-duration", length.String(), "-seed", fmt.Sprint(seed), "-out", dir, "-ledger", s.ledger)
	if s.places != "" {
		cmd.Args = append(cmd.Args, "-places", s.places)
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = printed, printed
	if err := child.Start(cmd); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// It gets the signals in turn: to end in order, to print where it hangs, to die.
	late := time.NewTimer(length + grace)
	defer late.Stop()
	interrupt := ctx.Done()
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL}
	for {
		select {
		case err := <-ended:
			return err
		case <-interrupt:
			interrupt = nil
		case <-late.C:
			if len(signals) == 3 {
				signals = signals[1:]
			}
		}
		if len(signals) > 0 {
			if err := child.Signal(signals[0], cmd.Process.Pid); err != nil {
				return err
			}
			signals = signals[1:]
		}
		late.Reset(grace)
	}
}

// prefix is how the names of the campaigns' folders begin.
const prefix = "seed-"

// violations returns the histories of violations in a campaign's folder, reduced ones.
func violations(dir string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, "*.history"))
	return slices.DeleteFunc(all, func(path string) bool { return strings.HasSuffix(path, "-whole.history") }), err
}

// prune removes folders of campaigns until -keep are left: first the oldest of those
// without a violation, then the oldest.
func (s *soak) prune() error {
	all, err := filepath.Glob(filepath.Join(s.dir, prefix+"*"))
	if err != nil {
		return err
	}
	var found, others []string
	for _, dir := range all {
		v, err := violations(dir)
		if err != nil {
			return err
		}
		if len(v) > 0 {
			found = append(found, dir)
		} else {
			others = append(others, dir)
		}
	}
	for _, dir := range slices.Concat(others, found)[:max(0, len(all)-s.keep)] {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
