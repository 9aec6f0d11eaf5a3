package main

import "syscall"

// endsWithUs makes a child end when we end in whatever way, and not by the
// terminal's Ctrl-C: containers are removed first.
func endsWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
