package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// maxBatch stays below the 128 operations that a server takes in a transaction
// by default, max-txn-ops. One that takes fewer refuses, and fewer requests then
// go together.
const maxBatch = 100

// SwapMany implements [backends.BatchSwapper]: a transaction of transactions, each of
// which compares for itself.
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return b.base.SwapMany(ctx, changes, func(ctx context.Context) ([]backends.Outcome, error) {
		n := len(changes)
		outcomes, same, put, each := make([]backends.Outcome, n), make([]clientv3.Cmp, n), make([]clientv3.Op, n), make([]clientv3.Op, n)
		for i, c := range changes {
			same[i], put[i], outcomes[i].Record = b.change(c.Name, c.Prev, c.Next)
			each[i] = clientv3.OpTxn(same[i:i+1], put[i:i+1], nil)
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

// LoadMany implements [backends.BatchLoader]: a transaction of nothing but linearizable
// ranges, which is as linearizable as one of them and makes no revision.
func (b *Backend) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.base.LoadMany(ctx, names, func(ctx context.Context) ([]backends.Outcome, error) {
		each := make([]clientv3.Op, len(names))
		for i, name := range names {
			each[i] = clientv3.OpGet(b.prefix + name)
		}
		answer, err := b.client.Txn(ctx).Then(each...).Commit()
		switch {
		case err != nil && (is(err, rpctypes.ErrTooManyOps) || is(err, rpctypes.ErrPermissionDenied)): // one key may be the reason
			return nil, fmt.Errorf("%w: %w", backends.ErrNotTried, err)
		case err != nil:
			return nil, err
		case len(answer.Responses) != len(names):
			return nil, fmt.Errorf("%w: it answered %d of %d reads", backends.ErrUnavailable, len(answer.Responses), len(names))
		}
		outcomes := make([]backends.Outcome, len(names))
		for i, a := range answer.Responses {
			o, found := &outcomes[i], a.GetResponseRange()
			switch {
			case found == nil:
				o.Err = fmt.Errorf("%w: it answered a read with something else", backends.ErrUnavailable)
			case len(found.Kvs) > 0:
				o.Record, o.Err = decode(names[i], found.Kvs[0].Value)
			}
		}
		return outcomes, nil
	})
}
