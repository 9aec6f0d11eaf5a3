// Package seats lets package partition make Electors that acquire the seats of a group, and
// use of them what package elector does not export.
package seats

import (
	"log/slog"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// A Backend is a backend with which elector.New makes an Elector that acquires a seat of a
// group: see rule.Replaced. Its lease drains when Options.Healthy returns an error. New takes
// the Backend apart, so it must not be wrapped in another one.
type Backend struct {
	backends.Backend
	Bind func(Parts) // New calls it with the parts of the Elector
}

// Parts are the parts of such an Elector.
type Parts struct {
	View *rule.View // what it has seen of its election

	// The options of the same names, with their defaults.
	TTL, RenewEvery, RequestTimeout, ReleaseTimeout time.Duration
	Logger                                          *slog.Logger

	// Ended returns a channel that is closed when the latest lease is over. The context of the
	// lease can end before, when it drains.
	Ended func() <-chan struct{}

	// Abandon ends the latest lease and writes no release, as a panic of the worker does.
	Abandon func(cause error)
}
