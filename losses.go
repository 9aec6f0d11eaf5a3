package elector

import (
	"sync"

	"github.com/elector-go/elector/backends"
)

// losses has, for a backend on which many elections are led, the number of leases that were
// lost since the first was logged.
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
		others, counted := losses.of[e.backend]
		if counted {
			others++
		}
		losses.of[e.backend] = others
		losses.Unlock()
		if counted {
			return
		}
		e.clock.AfterFunc(e.o.TTL, func() {
			losses.Lock()
			others := losses.of[e.backend]
			delete(losses.of, e.backend)
			losses.Unlock()
			if others > 0 {
				e.storeLog.Warn("elector: leads no more", "elections", others, "cause", cause, "error", err)
			}
		})
	}
	e.log.Warn("elector: leads no more", "token", l.token, "cause", cause, "error", err)
}
