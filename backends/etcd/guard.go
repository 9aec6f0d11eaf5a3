package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// Commit makes the operations in one transaction, if the lease's acquisition is
// still the latest: see Fencing in the package comment. The client must be of the
// cluster that keeps the election. Commit takes one round trip. Its errors are
// those of Guard, and:
//
//   - ErrStale if another candidate has acquired the election since, or the lease
//     was resigned. Nothing was written, and the worker must stop.
//   - ErrDenied if the client's user lacks a permission. Nothing was written.
//   - Any other error of the client. Whether something was written is unknown.
func Commit(ctx context.Context, kv clientv3.KV, lease backends.Lease, operations ...clientv3.Op) (*clientv3.TxnResponse, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	answer, err := kv.Txn(ctx).If(c.comparisons()...).Then(operations...).Commit()
	switch {
	case err != nil && is(err, rpctypes.ErrPermissionDenied):
		return nil, fmt.Errorf("writing under the lease of election %s on %s: %w: besides its own keys the client's user must be allowed to read %s; an administrator can run: etcdctl role grant-permission ROLE read '%s': %w", c.election, c.store, backends.ErrDenied, c.key, c.key, err)
	case err != nil:
		return nil, err
	case !answer.Succeeded:
		return nil, fmt.Errorf("writing under the lease of election %s on %s: %w: the record is no longer this lease's; nothing was written, and the worker must stop", c.election, c.store, backends.ErrStale)
	}
	return answer, nil
}

// Guard returns comparisons that hold while the lease's acquisition is the latest,
// for the If of a transaction of your own. Renewals do not affect them. If
// they fail, the lease is stale.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on etcd.
func Guard(lease backends.Lease) ([]clientv3.Cmp, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	return c.comparisons(), nil
}

// A condition is what a lease's record has as long as its acquisition is the latest.
type condition struct{ store, election, key, stem string }

func conditionOf(lease backends.Lease) (condition, error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "etcd")
	if err != nil {
		return condition{}, err
	}
	return condition{b.base.Store(), a.Election, b.prefix + a.Election, backends.RecordPrefix(a.Election, a.Record)}, nil
}

// comparisons hold for all texts that are longer than the stem and begin with it.
func (c condition) comparisons() []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(c.key), ">", c.stem),
		clientv3.Compare(clientv3.Value(c.key), "<", c.stem+"\xff"), // which is no byte of UTF-8
	}
}
