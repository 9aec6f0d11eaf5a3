package consul

import (
	"context"
	"fmt"
	"net/http"

	"github.com/elector-go/elector/backends"
)

// maxBatch is how many operations all versions of Consul take in a transaction.
const maxBatch = 64

// SwapMany implements [backends.BatchSwapper]: transactions with as many changes as
// they take, each of which makes all of its changes or none, and others without those
// that were refused.
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return b.base.SwapMany(ctx, changes, func(ctx context.Context) (outcomes []backends.Outcome, _ error) {
		for len(changes) > len(outcomes) {
			n, operations := 0, 0
			for _, c := range changes[len(outcomes):] {
				if operations += b.cost(c); operations > maxBatch {
					break
				}
				n++
			}
			some, err := backends.AllOrNone(changes[len(outcomes):len(outcomes)+n], func(some []backends.Change) ([]backends.Outcome, []int, error) {
				return b.swapAll(ctx, some)
			})
			if err != nil {
				some = backends.Outcomes(n, b.base.Explain(ctx, fmt.Sprintf("writing %d elections", n), err))
			}
			outcomes = append(outcomes, some...)
		}
		return outcomes, nil
	})
}

// cost is the number of operations of a change.
func (b *Backend) cost(c backends.Change) int {
	if renews(c.Prev, c.Next) {
		return 1
	}
	return 1 + len(b.succession(c.Name, c.Next))
}

// swapAll makes all changes, or none if one of them is refused.
func (b *Backend) swapAll(ctx context.Context, changes []backends.Change) (outcomes []backends.Outcome, refused []int, err error) {
	var operations []Operation
	var of []int // the change of each operation
	for i, c := range changes {
		each, err := b.operations(c.Name, c.Prev, c.Next)
		if err != nil {
			return nil, []int{i}, fmt.Errorf("%w: %v", backends.ErrNotTried, err)
		}
		for _, o := range each {
			operations, of = append(operations, o), append(of, i)
		}
	}
	results, err := b.transact(ctx, operations, maxAnswer)
	if r, ok := as[*refusal](err); ok {
		for _, o := range r.operations {
			if o.OpIndex >= 0 && o.OpIndex < len(of) {
				refused = append(refused, of[o.OpIndex])
			}
		}
		return nil, refused, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
	}
	if status, ok := as[*statusError](err); ok && status.status == http.StatusRequestEntityTooLarge {
		return nil, nil, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
	}
	if err != nil {
		return nil, nil, err
	}
	outcomes = make([]backends.Outcome, len(changes))
	for i, c := range changes {
		outcomes[i].Record = c.Next
		if outcomes[i].Record.Version, err = written(results, b.prefix+c.Name); err != nil {
			return nil, nil, err
		}
	}
	return outcomes, nil, nil
}
