package etcd

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// canned is a store that has one answer to all transactions.
type canned struct {
	clientv3.KV
	answer clientv3.TxnResponse
	err    error
	asked  []clientv3.Op // last
}

func (c *canned) Txn(context.Context) clientv3.Txn { return cannedTxn{c: c} }

type cannedTxn struct {
	clientv3.Txn
	c *canned
}

func (t cannedTxn) Then(each ...clientv3.Op) clientv3.Txn {
	t.c.asked = each
	return t
}

func (t cannedTxn) Commit() (*clientv3.TxnResponse, error) { return &t.c.answer, t.c.err }

// LoadMany asks for each name as Load does, and what the server did not answer is not
// absent. One key that the user may not read, and a server that takes fewer operations,
// leave each name to be read by itself.
func TestLoadMany(t *testing.T) {
	missing := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{}}}
	for name, test := range map[string]struct {
		answers []*pb.ResponseOp
		err     error
		want    error // of "b"
	}{
		"both are missing":             {[]*pb.ResponseOp{missing, missing}, nil, nil},
		"one is not answered":          {[]*pb.ResponseOp{missing}, nil, backends.ErrUnavailable},
		"one is answered with nothing": {[]*pb.ResponseOp{missing, {}}, nil, backends.ErrUnavailable},
		"one is denied":                {nil, rpctypes.ErrPermissionDenied, backends.ErrNotTried},
		"they are too many":            {nil, rpctypes.ErrTooManyOps, backends.ErrNotTried},
		"the server has no leader":     {nil, rpctypes.ErrNoLeader, backends.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			store := &canned{answer: clientv3.TxnResponse{Responses: test.answers}, err: test.err}
			b := newBackend("etcd://h/p/", "p/")
			b.client = &clientv3.Client{KV: store}
			got := b.LoadMany(t.Context(), []string{"a", "b"})
			if len(got) != 2 || got[1].Record.Exists() || !errors.Is(got[1].Err, test.want) {
				t.Errorf("got %+v, want %v", got, test.want)
			}
			for i, key := range []string{"p/a", "p/b"} {
				if op := store.asked[i]; string(op.KeyBytes()) != key || !op.IsGet() || op.IsSerializable() || op.RangeBytes() != nil {
					t.Errorf("operation %d is %+v; want a linearizable read of %s", i, op, key)
				}
			}
		})
	}
}
