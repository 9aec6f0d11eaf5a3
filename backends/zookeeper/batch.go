package zookeeper

import (
	"context"
	"fmt"
	"slices"

	"github.com/elector-go/elector/backends"
)

// maxBatch keeps a request far below jute.maxbuffer, by default a megabyte: a
// server closes the connection of a client that sends more.
const maxBatch = 100

// SwapMany implements [backends.BatchSwapper]: one multi, which makes all changes or
// none, and another one without those that were refused.
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return b.base.SwapMany(ctx, changes, func(ctx context.Context) ([]backends.Outcome, error) {
		return backends.AllOrNone(changes, func(some []backends.Change) ([]backends.Outcome, []int, error) { return b.swapAll(ctx, some) })
	})
}

// swapAll makes all changes, or none if one of them is refused.
func (b *Backend) swapAll(ctx context.Context, changes []backends.Change) (outcomes []backends.Outcome, refused []int, err error) {
	var ops []any
	var of []int                                                              // the change of each operation
	guards, second := make([]string, len(changes)), make([]int, len(changes)) // the operation that writes
	for i, c := range changes {
		each, guard, err := b.guess(c)
		if err != nil {
			return nil, []int{i}, fmt.Errorf("%w: %v", backends.ErrNotTried, err)
		}
		guards[i], second[i] = guard, len(ops)+1
		ops, of = append(ops, each...), append(of, slices.Repeat([]int{i}, len(each))...)
	}
	answers, at, err := b.multi(ctx, ops)
	switch {
	case at >= 0:
		return nil, []int{of[at]}, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
	case err != nil:
		return nil, nil, err
	case len(answers) != len(ops):
		return nil, nil, fmt.Errorf("%w: it answered %d of %d operations", backends.ErrUnavailable, len(answers), len(ops))
	}
	outcomes = make([]backends.Outcome, len(changes))
	for i, c := range changes {
		var dataVersion int32 // of a new znode
		if stat := answers[second[i]].Stat; stat != nil {
			dataVersion = stat.Version
		}
		outcomes[i].Record = c.Next
		outcomes[i].Record.Version = version(guards[i], dataVersion)
	}
	return outcomes, nil, nil
}

// guess returns the operations of a change, the second of which writes the record. They assume that the holder's node is there if the process
// that changes the record holds it, and gone otherwise: a holder that is replaced after
// a crash has no session any more.
func (b *Backend) guess(c backends.Change) (ops []any, guard string, err error) {
	path := b.path(c.Name)
	if !c.Prev.Exists() {
		ops, guard = b.creation(c.Name, c.Next)
		return ops, guard, nil
	}
	guard, dataVersion, err := parseVersion(c.Prev.Version)
	switch {
	case err != nil:
		return nil, "", err
	case renews(c.Prev, c.Next):
		return append(b.renewal(c.Name, guard, dataVersion, c.Next), exists(leaderPath(path))), guard, nil
	}
	ops, guard = b.succession(c.Name, guard, dataVersion, c.Next)
	return append(ops, b.leaderOps(path, c.Next, c.Next.Vacant())...), guard, nil
}
