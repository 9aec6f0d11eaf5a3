// Package child starts processes that do not outlive this one, stops them and
// lets them go on.
package child

import (
	"errors"
	"os/exec"
	"syscall"
)

// Start is cmd.Start for a process that shall not outlive this one, whatever
// ends it: on Linux it is killed when this process ends. It gets a process group
// of its own, so the terminal's Ctrl-C does not reach it.
func Start(cmd *exec.Cmd) error { return StartUntil(cmd, syscall.SIGKILL) }

// StartUntil is Start with another signal for the end of this process.
func StartUntil(cmd *exec.Cmd, end syscall.Signal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	return start(cmd, end)
}

// Prepare starts a child that ends at once, and panics if it cannot. The first
// child leaves a goroutine behind that lives as long as this process: a test that
// looks for goroutines left behind calls Prepare before it begins.
func Prepare() {
	first := exec.Command("true")
	if err := errors.Join(Start(first), first.Wait()); err != nil {
		panic(err)
	}
}

// Freeze stops children with SIGSTOP and returns when they stand: the signal
// arrives some time after it was sent. [Thaw] lets them go on.
func Freeze(pids ...int) error {
	if err := Signal(syscall.SIGSTOP, pids...); err != nil {
		return err
	}
	return waitAll(pids, "stand still", stands)
}

// Thaw lets children go on that Freeze, or they themselves, have stopped.
func Thaw(pids ...int) error { return Signal(syscall.SIGCONT, pids...) }

// WaitFrozen waits, ten seconds at most, until a child stands that stops
// itself.
func WaitFrozen(pid int) error { return waitAll([]int{pid}, "stop itself", stands) }

func stands(state byte) bool { return state == 'T' || state == 'Z' }
