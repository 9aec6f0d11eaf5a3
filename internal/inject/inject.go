// Package inject lets the packages of this module, and no others, use what an Elector
// keeps to itself. Package elector sets its variables.
package inject

import (
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// Machine sets what an Elector made with options (an *elector.Options) takes
// from its machine.
var Machine func(options any, c clock.Clock, random func() uint64)

// Seat makes an Elector made with options (an *elector.Options) one that acquires a seat
// of a group: see rule.Replaced. Its lease drains when Options.Healthy returns an error.
var Seat func(options any)

// Abandon ends a lease (an *elector.Lease) and writes no release, as a panic of the worker
// does.
var Abandon func(lease any, cause error)

// Ended returns a channel that is closed when a lease (an *elector.Lease) is over. Its
// context can end before, when it drains.
var Ended func(lease any) <-chan struct{}

// Parts are parts of an Elector.
type Parts struct {
	Options any // an elector.Options, with its defaults
	Clock   clock.Clock
	Random  func() uint64
	View    *rule.View // what the Elector has seen of its election
}

// Inside returns the parts of an *elector.Elector.
var Inside func(e any) Parts
