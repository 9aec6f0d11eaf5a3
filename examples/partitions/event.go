package main

import "github.com/elector-go/elector/examples/internal/stage"

// Kinds of events of the children, beside those of the stage.
const (
	owns    = "owns"      // the worker of a partition was started
	told    = "told"      // the context of its lease has ended
	gaveUp  = stage.Ended // it has returned
	renewed = "renewed"   // the lease of the seat was renewed: what is left of this one
	lost    = "lost"      // the lease of the seat was lost, and all leases with it
	about   = "about"     // the lease was checked; the request waits for the demo
	counted = "counted"   // the ledger took the request
	refused = "refused"   // the ledger refused the request as stale
	failed  = "failed"    // it failed for another reason
)
