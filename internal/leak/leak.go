// Package leak makes a test binary fail if it leaves goroutines or descriptors
// behind.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Main runs the tests of a package, for its TestMain: it exits 1 if they fail,
// or if more goroutines run, or more descriptors (connections included) are
// open afterwards than before. What ends by itself has ten seconds to do so.
func Main(m *testing.M, after ...func()) {
	goroutines, descriptors := runtime.NumGoroutine(), len(openDescriptors())
	code := m.Run()
	for _, f := range after {
		f()
	}
	if code == 0 {
		if left := settle(goroutines, descriptors, 10*time.Second); left != "" {
			fmt.Fprintln(os.Stderr, "leak:", left)
			code = 1
		}
	}
	os.Exit(code)
}

// settle waits until no more is there than at the start, and says what is left
// over otherwise.
func settle(goroutines, descriptors int, patience time.Duration) string {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		g, d := runtime.NumGoroutine(), openDescriptors()
		if g <= goroutines && len(d) <= descriptors {
			return ""
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			return fmt.Sprintf("%d goroutines, %d at the start; %d descriptors, %d at the start: %s\n%s", g, goroutines, len(d), descriptors, strings.Join(d, ", "), stacks)
		}
	}
}

// openDescriptors lists what this process's descriptors are of, where the system can list
// them. The runtime's own, opened at the first use of the network or a timer, are left out.
func openDescriptors() (all []string) {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		target, err := os.Readlink(dir + "/" + e.Name())
		switch {
		case err != nil: // the listing's own, closed meanwhile
		case target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]":
		default:
			all = append(all, target)
		}
	}
	return all
}
