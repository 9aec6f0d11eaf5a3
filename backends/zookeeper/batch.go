package zookeeper

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
)

// maxBatch keeps a request far below jute.maxbuffer, by default a megabyte: a
// server closes the connection of a client that sends more.
const maxBatch = 100

// SwapMany implements [backends.BatchSwapper]: one multi, which applies all renewals
// or none.
func (b *Backend) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	return b.handle.SwapMany(ctx, renewals, func(ctx context.Context) ([]backends.Outcome, error) {
		outcomes, guards := make([]backends.Outcome, len(renewals)), make([]string, len(renewals))
		var ops []any
		for i, r := range renewals {
			guard, dataVersion, err := parseVersion(r.Prev.Version)
			if err != nil {
				return nil, fmt.Errorf("%w: %v", backends.ErrNotTried, err)
			}
			guards[i] = guard
			ops = append(append(ops, b.renewal(r.Name, guard, dataVersion, r.Next)...), exists(leaderPath(b.path(r.Name))))
		}
		const each = 3 // operations of a renewal; the second returns the new version
		answers, refused, err := b.multi(ctx, ops)
		switch {
		case refused >= 0:
			return nil, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
		case err != nil:
			return nil, err
		case len(answers) != len(ops):
			return nil, fmt.Errorf("%w: it answered %d of %d operations", backends.ErrUnavailable, len(answers), len(ops))
		}
		for i, r := range renewals {
			outcomes[i].Record = r.Next
			outcomes[i].Record.Version = version(guards[i], answers[each*i+1].Stat.Version)
		}
		return outcomes, nil
	})
}
