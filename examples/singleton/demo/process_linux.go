package demo

import "syscall"

// childAttributes keep Ctrl-C for the demo itself, and let a child die with
// it, even with a demo that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
