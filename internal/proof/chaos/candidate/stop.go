package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
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

// here is the place.
func (s *stopper) here() {
	if s.asked.CompareAndSwap(true, false) {
		stopThisProcess()
	}
}
