//go:build unix

package stage

import (
	"os"
	"syscall"
)

// signals are what Act sends.
var signals = map[string]os.Signal{
	Killed:     syscall.SIGKILL,
	Stopped:    syscall.SIGSTOP,
	Continued:  syscall.SIGCONT,
	Terminated: syscall.SIGTERM,
}
