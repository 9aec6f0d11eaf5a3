package main

import (
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// A stopper stops this process between a Check and the request that it allows,
// once it was asked to.
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

// RoundTrip implements [http.RoundTripper].
func (s *stopper) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.asked.CompareAndSwap(true, false) {
		stopThisProcess()
	}
	return network.RoundTrip(r)
}
