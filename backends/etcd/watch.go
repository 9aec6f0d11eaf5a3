package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// Watch implements [backends.Watcher].
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error {
		return b.watch(clientv3.WithRequireLeader(ctx), name, changed)
	})
}

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	// A remembered revision could be compacted, again and again; the one just
	// read is not.
	key := b.prefix + name
	answer, err := b.client.Get(ctx, key)
	if err != nil {
		return err
	}
	var r backends.Record
	if len(answer.Kvs) > 0 {
		if r, err = decode(name, answer.Kvs[0].Value); err != nil {
			return err
		}
	}
	changed(r)
	ctx, cancel := context.WithCancel(ctx)
	answers := b.client.Watch(ctx, key, clientv3.WithRev(answer.Header.Revision+1))
	defer func() {
		cancel()
		for range answers { // closed once nothing of the watch is left
		}
	}()
	for answer := range answers {
		if err := answer.Err(); err != nil {
			return err
		}
		if n := len(answer.Events); n > 0 {
			last, r := answer.Events[n-1], backends.Record{}
			if last.Type != clientv3.EventTypeDelete {
				if r, err = decode(name, last.Kv.Value); err != nil {
					return err
				}
			}
			changed(r)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errWatchEnded
}
