package zookeeper

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
)

// maxBatch keeps a request far below the megabyte that a server takes by
// default, jute.maxbuffer: it cuts the connection of who sends more.
const maxBatch = 100

// RenewMany implements [backends.Batcher]: one multi, of which all is applied or
// nothing.
func (b *Backend) RenewMany(ctx context.Context, renewals []backends.Renewal) []backends.Outcome {
	outcomes := make([]backends.Outcome, len(renewals))
	all := func(err error) []backends.Outcome { return backends.Outcomes(len(renewals), err) }
	guards := make([]string, len(renewals))
	var ops []any
	for i, r := range renewals {
		if err := backends.CheckName(r.Name); err != nil {
			return all(err)
		}
		guard, dataVersion, err := parseVersion(r.Prev.Version)
		if err != nil {
			return all(fmt.Errorf("%w: %w", backends.ErrNotTried, err))
		}
		guards[i] = guard
		ops = append(append(ops, b.exchange(r.Name, guard, dataVersion, r.Next)...), present(b.path(r.Name)))
	}
	const each = 3 // operations of a renewal, of which the second tells the new version
	answers, refused, err := b.multi(ctx, ops)
	switch {
	case refused >= 0:
		return all(fmt.Errorf("%w: %w", backends.ErrNotTried, err))
	case err != nil:
		return all(b.explain(ctx, fmt.Sprintf("renewing %d elections", len(renewals)), err))
	}
	if len(answers) != len(ops) {
		return all(fmt.Errorf("%w: it answered %d of %d operations", backends.ErrUnavailable, len(answers), len(ops)))
	}
	for i, r := range renewals {
		outcomes[i].Record = r.Next
		outcomes[i].Record.Version = version(guards[i], answers[each*i+1].Stat.Version)
	}
	return outcomes
}
