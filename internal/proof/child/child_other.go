//go:build !linux

package child

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// That a child ends with this process is left to what watches it: the guard of a
// store, or the end of its input.
func start(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Start() }

// Table reads the system's table of processes.
func Table() ([]State, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var all []State
	for line := range strings.Lines(string(out)) {
		var p State
		var state string
		if _, err := fmt.Sscan(line, &p.PID, &p.Parent, &state); err == nil {
			p.State = state[0]
			all = append(all, p)
		}
	}
	return all, nil
}
