package migrate

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// UnderEtcd holds etcd's Election.
func UnderEtcd(ctx context.Context, client *clientv3.Client, prefix, id string, ttl int, lead func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer session.Close() // after lead has returned; this releases the election
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	if err := concurrency.NewElection(session, prefix).Campaign(ctx, id); err != nil {
		return err
	}
	return lead(ctx)
}
