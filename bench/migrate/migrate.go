// Package migrate is the code of docs/migrate.md: work under a lock of another
// library, under both locks, and under an election of this library. Its test moves
// real processes from one to the other.
package migrate

import (
	"context"

	"github.com/elector-go/elector"
)

// An oldLock calls lead while this process holds a lock of another library, once.
// The context of lead ends when ctx ends or the lock is lost. The lock is released
// after lead has returned, not before.
type oldLock func(ctx context.Context, lead func(context.Context) error) error

// VersionB works while this process holds both locks. It takes the old one first.
// When it returns, exit and let the process be restarted.
func VersionB(ctx context.Context, old oldLock, e *elector.Elector, work func(context.Context, *elector.Lease) error) error {
	return old(ctx, func(ctx context.Context) error {
		return e.Run(ctx, work)
	})
}

// VersionC works while this process leads.
func VersionC(ctx context.Context, e *elector.Elector, work func(context.Context, *elector.Lease) error) error {
	return e.Run(ctx, work)
}
