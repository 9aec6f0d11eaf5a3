package child

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// gone is how long processes may take that were told to end or to stop.
const gone = 10 * time.Second

// A State is one line of the system's table of processes.
type State struct {
	PID, Parent int
	State       byte // T stands, Z is dead and not waited for
}

// Signal sends to processes, and to process groups if negative. Those that are
// gone are not an error.
func Signal(sig syscall.Signal, pids ...int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %v to process %d: %w", sig, pid, err)
		}
	}
	return nil
}

// Of returns the children of a process.
func Of(pid int) ([]int, error) {
	all, err := Table()
	var found []int
	for _, p := range all {
		if p.Parent == pid {
			found = append(found, p.PID)
		}
	}
	return found, err
}

// WaitGone waits, ten seconds at most, until the processes have ended.
func WaitGone(pids ...int) error {
	return waitAll(pids, "end", func(state byte) bool { return state == 'Z' })
}

// waitAll waits until each of the processes is gone or in a state that will do.
func waitAll(pids []int, what string, done func(state byte) bool) error {
	if len(pids) == 0 {
		return nil
	}
	deadline := time.Now().Add(gone)
	for {
		all, err := Table()
		if err != nil {
			return err
		}
		waiting := 0
		for _, p := range all {
			for _, pid := range pids {
				if p.PID == pid && !done(p.State) {
					waiting = pid
				}
			}
		}
		if waiting == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not %s within %v", waiting, what, gone)
		}
		time.Sleep(time.Millisecond)
	}
}
