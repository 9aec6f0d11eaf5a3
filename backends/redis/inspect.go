package redis

import (
	"context"
	"time"

	"github.com/elector-go/elector/backends"
)

// Inspect implements [backends.Inspector]. It looks at replicas, at what the server
// writes to its disk, at eviction and at the clock, as far as the user may.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		return call(ctx, b, func() (i backends.Inspection, err error) {
			found, err := b.look(ctx, b.client)
			if is(err, "NOPERM") {
				found, err = []backends.Finding{{What: "server", Seen: "not shown to this user", Fix: "to see it, grant +info and +config|get"}}, nil
			}
			if err != nil {
				return i, err
			}
			if i.Findings = found; b.options.Durability == Lossy {
				for n := range found {
					found[n].Err = nil // the operator knows
				}
			}
			if clock, err := b.client.Time(ctx).Result(); err == nil { // for those with the right
				i.Clock = clock
			}
			return i, nil
		})
	})
}
