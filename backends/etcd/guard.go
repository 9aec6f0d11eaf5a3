package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// Guard returns the comparisons that hold in a transaction while the lease's
// acquisition is the latest: put them into the If of a transaction that writes
// your data, and a leader that was overtaken cannot write. Renewals do not
// disturb them. They take no round trip, and the data's user needs the right to
// read the election's key.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on etcd. The transaction must go to the
// cluster that keeps the election.
func Guard(holding backends.Holding) ([]clientv3.Cmp, error) {
	a, err := holding.Acquisition()
	if err != nil {
		return nil, err
	}
	b, ok := backends.As[*Backend](a.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: election %s is not on etcd, so etcd cannot guard a write with its lease", backends.ErrMisconfigured, a.Election)
	}
	// The stem is the same in all states of an acquisition and in no other one.
	key, stem := b.prefix+a.Election, backends.Stem(a.Election, a.Record)
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(key), ">", stem),
		clientv3.Compare(clientv3.Value(key), "<", stem+"\xff"),
	}, nil
}

// Commit makes the operations in one transaction under Guard. It returns the
// errors of Guard and of kv, and ErrStale if another acquisition has followed the
// lease's: nothing was written then, and the caller must stop.
func Commit(ctx context.Context, kv clientv3.KV, holding backends.Holding, operations ...clientv3.Op) (*clientv3.TxnResponse, error) {
	guard, err := Guard(holding)
	if err != nil {
		return nil, err
	}
	answer, err := kv.Txn(ctx).If(guard...).Then(operations...).Commit()
	if err == nil && !answer.Succeeded {
		return nil, fmt.Errorf("%w: the record shows another acquisition, or none; nothing was written", backends.ErrStale)
	}
	return answer, err
}
