//go:build !linux

package stores

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// attributes put a child into its own process group. That it ends with us is
// left to its guard.
func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: account}
}

func startProcess(cmd *exec.Cmd) error { return cmd.Start() }

// processes reads the system's table of processes.
func processes() ([]processState, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var all []processState
	for line := range strings.Lines(string(out)) {
		var p processState
		var state string
		if _, err := fmt.Sscan(line, &p.pid, &p.parent, &state); err == nil {
			p.state = state[0]
			all = append(all, p)
		}
	}
	return all, nil
}
