package peers

import "github.com/elector-go/elector/internal/proof/stores"

// natses has no other library: no election library for NATS could be had as a module.
// github.com/nats-io/jsm.go had an experimental one; v0.5.1 has none.
var natses = []Library{electorOn(stores.NATS)}
