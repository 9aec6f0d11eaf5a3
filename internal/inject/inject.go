// Package inject lets only the packages of this module give an
// Elector other clocks and other random numbers than the machine's.
package inject

import "github.com/elector-go/elector/internal/clock"

// Machine sets what an Elector made with options (an *elector.Options) takes
// from its machine. Package elector sets it.
var Machine func(options any, c clock.Clock, random func() uint64)
