package electorcontroller

import (
	"context"
	"fmt"

	"github.com/elector-go/elector"
)

// Run campaigns, calls start while this process leads, and campaigns again after a
// loss. It is [elector.Elector.Run] for a worker that can fail to stop, such as the
// Start of a controller-runtime manager: when start returns an error, Run ends the
// lease, does not tell the store, and returns the error. End the process then, because
// parts of the manager may still run.
//
// start is called once in each term. A manager cannot be started twice, so start makes
// one, without leader election of its own. Controllers that are made again in the same
// process need SkipNameValidation. To end the process after a loss instead, start
// returns the error of the lease's Check when the manager has stopped.
//
// The context of start ends when the manager must stop: when ctx ends, or with the
// lease. In the first case the lease stays valid until start has returned, for at most
// ReleaseTimeout, and the store is told after that.
//
// Run blocks until ctx ends and start has returned, or start fails. It returns nil in
// the first case, and otherwise what [elector.Elector.Run] returns, or the error of
// start.
func Run(ctx context.Context, e *elector.Elector, start func(ctx context.Context, lease *elector.Lease) error) (err error) {
	var failed error
	defer func() {
		if failed != nil {
			recover()
			err = fmt.Errorf("electorcontroller: election %q: the manager stopped with an error, and parts of it may still run, so end this process: %w", e.Name(), failed)
		}
	}()
	return e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		if failed = start(ctx, lease); failed != nil {
			panic(failed) // the one way to leave Run so that it does not tell the store
		}
		return nil
	})
}
