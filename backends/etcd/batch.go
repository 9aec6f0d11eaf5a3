package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// maxBatch stays below the 128 operations that a server takes in a transaction
// by default, max-txn-ops. One that takes fewer refuses, and each swap then
// goes by itself.
const maxBatch = 100

// SwapMany implements [backends.BatchSwapper]: a transaction of transactions, each of
// which compares for itself.
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return b.base.SwapMany(ctx, changes, func(ctx context.Context) ([]backends.Outcome, error) {
		outcomes, each := make([]backends.Outcome, len(changes)), make([]clientv3.Op, len(changes))
		for i, c := range changes {
			same, put, next := b.change(c.Name, c.Prev, c.Next)
			each[i] = clientv3.OpTxn([]clientv3.Cmp{same}, []clientv3.Op{put}, nil)
			outcomes[i].Record = next
		}
		answer, err := b.client.Txn(ctx).Then(each...).Commit()
		switch {
		case err != nil && (is(err, rpctypes.ErrTooManyOps) || is(err, rpctypes.ErrRequestTooLarge)):
			return nil, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
		case err != nil:
			return nil, err
		case len(answer.Responses) != len(changes):
			return nil, fmt.Errorf("%w: it answered %d of %d changes", backends.ErrUnavailable, len(answer.Responses), len(changes))
		}
		for i, a := range answer.Responses {
			if txn := a.GetResponseTxn(); txn == nil || !txn.Succeeded {
				outcomes[i] = backends.Outcome{Err: backends.ErrConflict}
			}
		}
		return outcomes, nil
	})
}
