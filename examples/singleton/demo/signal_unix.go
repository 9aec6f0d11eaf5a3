//go:build unix

package demo

import (
	"os"
	"syscall"
)

// signals are what the demo sends.
var signals = map[string]os.Signal{
	killed:     syscall.SIGKILL,
	stopped:    syscall.SIGSTOP,
	continued:  syscall.SIGCONT,
	terminated: syscall.SIGTERM,
}
