package migrate

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// UnderClientGo holds a Lease of Kubernetes.
func UnderClientGo(ctx context.Context, lock resourcelock.Interface, lead func(context.Context) error) error {
	started := make(chan context.Context, 1)
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true, // safe here: release is called after lead has returned
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) { started <- held },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	running, release := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		le.Run(running)
	}()
	defer func() {
		release()
		<-done
	}()
	select {
	case held := <-started: // it ends when the lock is lost
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(held, cancel)()
		return lead(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
