package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A stopper stops this process at one place, once it was asked to.
type stopper struct{ asked atomic.Bool }

func (c *candidate) stopAtSignal() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			c.stop.asked.Store(true)
		}
	}()
}

// here is the place. The signal goes to this very thread: sent to the process,
// another thread could take it, and this one would go on for a moment.
func (s *stopper) here() {
	if s.asked.CompareAndSwap(true, false) {
		if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
			panic(err)
		}
	}
}
