//go:build unix

package cli

import (
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// A notifier tells systemd the state of run, if systemd started it. A systemd that does
// not read must not cost a lease, so a goroutine of its own writes.
type notifier struct {
	states chan string
	done   chan struct{}
}

func newNotifier(failed func(error)) *notifier {
	n := &notifier{make(chan string, 64), make(chan struct{})}
	go func() {
		defer close(n.done)
		said := false
		for state := range n.states {
			if _, err := daemon.SdNotify(false, state); err != nil && !said {
				said = true
				failed(err)
			}
		}
	}()
	return n
}

// tell drops the state if systemd has not read many.
func (n *notifier) tell(state string) {
	select {
	case n.states <- state:
	default:
	}
}

// close waits for at most a second.
func (n *notifier) close() {
	close(n.states)
	select {
	case <-n.done:
	case <-time.After(time.Second):
	}
}
