package stores

import (
	"os/exec"
	"syscall"
)

// StartProcess is cmd.Start for a process that shall not outlive this one,
// whatever ends it: the child is in a process group of its own and, on Linux,
// is killed when this process ends. It sets cmd.SysProcAttr.
func StartProcess(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes(nil)
	return startProcess(cmd)
}

// Freeze stops a child with SIGSTOP and returns when it stands; [Thaw] lets it
// go on.
func Freeze(pid int) error { return freeze(pid) }

// Thaw lets a child go on that Freeze, or itself, has stopped.
func Thaw(pid int) error { return signal(syscall.SIGCONT, pid) }

// WaitFrozen waits, ten seconds at most, until a child stands that stops
// itself.
func WaitFrozen(pid int) error {
	return waitAll([]int{pid}, "stop itself", func(state byte) bool { return state == 'T' || state == 'Z' })
}
