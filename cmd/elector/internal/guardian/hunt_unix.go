//go:build unix

package guardian

import "time"

// A hunt kills descendants again and again, until none is left that it has not
// killed before; then it slows down.
type hunt struct {
	next   Moment // when to look again
	pause  time.Duration
	before map[identity]bool

	namespace bool // this is process 1 of the namespace that is to be empty
}

const (
	firstPause = time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// again kills what it finds, and returns it.
func (h *hunt) again(command int) []process {
	for {
		fresh := false
		var found []process
		if h.namespace {
			found = killNamespace()
		} else {
			found = killAll(command)
		}
		now := map[identity]bool{}
		for _, p := range found {
			now[p.identity] = true
			fresh = fresh || !h.before[p.identity]
		}
		h.before = now
		if !fresh {
			h.pause = min(max(2*h.pause, firstPause), lastPause)
			h.next = Now().Add(h.pause)
			return found
		}
		h.pause = 0
	}
}

// spared is replaced by tests, for a process that survives SIGKILL.
var spared = func(pid int) bool { return false }
