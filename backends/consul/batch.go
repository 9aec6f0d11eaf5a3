package consul

import (
	"context"
	"fmt"
	"net/http"

	"github.com/elector-go/elector/backends"
)

// maxBatch is how many operations all versions of Consul take in a transaction.
const maxBatch = 64

// SwapMany implements [backends.BatchSwapper]: one transaction, which makes all
// renewals or none.
func (b *Backend) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	return b.handle.SwapMany(ctx, renewals, func(ctx context.Context) ([]backends.Outcome, error) {
		outcomes, changes := make([]backends.Outcome, len(renewals)), make([]Operation, len(renewals))
		for i, r := range renewals {
			var err error
			if changes[i], err = b.change(r.Name, r.Prev, r.Next); err != nil {
				return nil, fmt.Errorf("%w: %v", backends.ErrNotTried, err)
			}
		}
		results, err := b.transact(ctx, changes, maxAnswer)
		if notTried(err) {
			return nil, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
		}
		if err != nil {
			return nil, err
		}
		for i, r := range renewals {
			outcomes[i].Record = r.Next
			if outcomes[i].Record.Version, err = written(results, changes[i].Key); err != nil {
				return nil, err
			}
		}
		return outcomes, nil
	})
}

// notTried reports whether Consul certainly made none of the operations, because
// of one of them or because they are too many.
func notTried(err error) bool {
	_, refused := as[*refusal](err)
	status, ok := as[*statusError](err)
	return refused || ok && status.status == http.StatusRequestEntityTooLarge
}
