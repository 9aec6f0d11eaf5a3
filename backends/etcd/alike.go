package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/elector-go/elector/backends"
)

var errUnlike = errors.New("it does not do what a transaction of etcd 3.3 or later does")

// probe makes sure that what answers compares as etcd does, and takes a transaction
// within a transaction, as of version 3.3. The one that it sends reads, and changes
// nothing: a user who may read the prefix may send it. No election has its key.
func (b *Backend) probe(ctx context.Context) error {
	read := clientv3.OpGet(b.prefix, clientv3.WithKeysOnly())
	never := clientv3.Compare(clientv3.CreateRevision(b.prefix), "=", math.MaxInt64)
	neither := clientv3.Compare(clientv3.Value(b.prefix), "=", "a value that no key has")
	answer, err := b.client.Txn(ctx).If(never).Then(read).
		Else(clientv3.OpTxn([]clientv3.Cmp{neither}, []clientv3.Op{read}, []clientv3.Op{read})).Commit()
	switch c := code(err); {
	case err == nil && compares(answer):
		return nil
	case err == nil:
		err = errUnlike
	case is(err, rpctypes.ErrNoSpace):
		// Older servers refuse any transaction at their quota, 3.3 for one, and serve reads.
		_, err = b.client.Get(ctx, b.prefix, clientv3.WithKeysOnly())
		return err
	case is(err, rpctypes.ErrUserEmpty) || is(err, rpctypes.ErrAuthFailed) || is(err, rpctypes.ErrAuthOldRevision):
		return err // etcd has this code for them too
	case c == codes.InvalidArgument || c == codes.Unimplemented:
		err = fmt.Errorf("%w: %w", errUnlike, err)
	default:
		return err
	}
	return fmt.Errorf("%w: %s is not an etcd that elections can use; use etcd 3.4 or later itself, and no API that stands in for it, such as kine: %w", backends.ErrMisconfigured, b.answering(ctx), err)
}

// compares reports whether the answer of the probe is that of etcd: both comparisons
// fail.
func compares(answer *clientv3.TxnResponse) bool {
	if answer.Succeeded || len(answer.Responses) != 1 {
		return false
	}
	within := answer.Responses[0].GetResponseTxn()
	return within != nil && !within.Succeeded && len(within.Responses) == 1 && within.Responses[0].GetResponseRange() != nil
}

// answering describes the server that answers, for an error.
func (b *Backend) answering(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	status, err := etcdserverpb.NewMaintenanceClient(b.client.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil || status.Version == "" {
		return "the server, which does not report its version,"
	}
	return fmt.Sprintf("the server, of version %.40q,", status.Version)
}
