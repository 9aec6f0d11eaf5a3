package elector

import (
	"sync"
	"sync/atomic"
)

// losses has, for a backend on which many elections are led, the number of leases that were
// lost since the first was logged.
var losses sync.Map

// logLoss logs that the lease is lost or deposed. Of many leases of one backend it logs the
// first, and after a TTL how many others there were: what they have in common is the cause.
func (l *Lease) logLoss(cause string, err error) {
	e := l.e
	if l.place.Many() {
		others := new(atomic.Int64)
		if counted, is := losses.LoadOrStore(e.backend, others); is {
			counted.(*atomic.Int64).Add(1)
			return
		}
		e.clock.AfterFunc(e.o.TTL, func() {
			losses.Delete(e.backend)
			if n := others.Load(); n > 0 {
				e.storeLog.Warn("elector: leads no more", "elections", n, "cause", cause, "error", err)
			}
		})
	}
	e.log.Warn("elector: leads no more", "token", l.token, "cause", cause, "error", err)
}
