package elector

import (
	"sync"

	"github.com/elector-go/elector/backends"
)

// losses counts, for a backend on which many elections are led, the leases that were lost since
// the first was logged.
var losses = struct {
	sync.Mutex
	of map[backends.Backend]int
}{of: map[backends.Backend]int{}}

// logLoss logs that the lease is lost or deposed. Of many leases of one backend it logs the
// first, and after a TTL how many others there were: what they have in common is the cause.
func (l *Lease) logLoss(cause string, err error) {
	e := l.e
	if l.place.Many() {
		losses.Lock()
		n, counts := losses.of[e.backend]
		if counts {
			n++
		}
		losses.of[e.backend] = n
		losses.Unlock()
		if counts {
			return
		}
		e.clock.AfterFunc(e.o.TTL, func() {
			losses.Lock()
			n := losses.of[e.backend]
			delete(losses.of, e.backend)
			losses.Unlock()
			if n > 0 {
				e.storeLog.Warn("elector: leads no more", "elections", n, "cause", cause, "error", err)
			}
		})
	}
	e.log.Warn("elector: leads no more", "token", l.token, "cause", cause, "error", err)
}
