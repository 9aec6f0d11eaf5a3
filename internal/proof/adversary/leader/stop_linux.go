package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// stopThisProcess sends the signal to this very thread: sent to the process, another
// thread could take it, and this one would go on for a moment.
func stopThisProcess() {
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
		panic(err)
	}
}
