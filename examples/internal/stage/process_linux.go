package stage

import "syscall"

// childAttributes keep Ctrl-C for the stage itself, and let a child die with
// it, even with a stage that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
