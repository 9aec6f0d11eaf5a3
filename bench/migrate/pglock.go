package migrate

import (
	"context"

	"cirello.io/pglock"
)

// UnderPGLock holds a lock of pglock.
func UnderPGLock(ctx context.Context, client *pglock.Client, name string, lead func(context.Context) error) error {
	return client.Do(ctx, name,
		func(ctx context.Context, _ *pglock.Lock) error { return lead(ctx) },
		// Otherwise the heartbeats end with ctx, before lead has returned.
		pglock.WithCustomHeartbeatContext(context.WithoutCancel(ctx)))
}
