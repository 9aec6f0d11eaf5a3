package electorcontroller_test

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/integrations/electorcontroller"
)

// A Manager is what matters here of controller-runtime's.
type Manager interface {
	Start(context.Context) error
}

// The leader makes a manager in each term, without leader election of its own and with
// GracefulShutdownTimeout -1.
func ExampleRun() {
	run := func(ctx context.Context, e *elector.Elector, newManager func(*elector.Lease) (Manager, error)) error {
		return electorcontroller.Run(ctx, e, func(ctx context.Context, lease *elector.Lease) error {
			mgr, err := newManager(lease) // for its reconcilers: Check before each write
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		})
	}
	_ = run
}

// The process ends after a loss: its manager, which was made before, cannot start twice.
func ExampleRun_once() {
	run := func(ctx context.Context, e *elector.Elector, mgr Manager) error {
		return electorcontroller.Run(ctx, e, func(ctx context.Context, lease *elector.Lease) error {
			if err := mgr.Start(ctx); err != nil {
				return err
			}
			return lease.Check()
		})
	}
	_ = run
}

// client-go's LeaderElector under a Lock. A controller-runtime manager takes the Lock as
// LeaderElectionResourceLockInterface.
func ExampleLock() {
	run := func(ctx context.Context, e *elector.Elector, work func(context.Context)) error {
		lock := electorcontroller.NewLock(e)
		return lock.Start(ctx, func(ctx context.Context) error {
			ctx, stop := context.WithCancel(ctx)
			leads, elected := make(chan struct{}), make(chan struct{})
			le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          lock,
				LeaseDuration: 15 * time.Second,
				RenewDeadline: 10 * time.Second,
				RetryPeriod:   2 * time.Second,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { close(leads) },
					OnStoppedLeading: func() {},
				},
			})
			if err != nil {
				stop()
				return err
			}
			go func() { defer close(elected); le.Run(ctx) }()
			select {
			case <-leads:
				work(ctx) // with the context of Start, which ends with the lease
			case <-ctx.Done():
			}
			stop()
			<-elected
			return nil
		})
	}
	_ = run
}
