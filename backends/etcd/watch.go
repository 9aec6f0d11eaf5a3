package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// Watch implements [backends.Watcher].
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.handle.Watch(ctx, name, func(ctx context.Context) error {
		return b.watch(clientv3.WithRequireLeader(ctx), name, b.prefix+name, changed, nil)
	})
}

// WatchLine implements [backends.Liner]. One watch of a range shows both keys.
func (b *Backend) WatchLine(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
	return b.handle.Watch(ctx, name, func(ctx context.Context) error {
		return b.watch(clientv3.WithRequireLeader(ctx), name, b.placeKey(name), changed, placed)
	})
}

// watch watches the keys from the record's up to last, which is the place's, or the
// record's alone.
func (b *Backend) watch(ctx context.Context, name, last string, changed func(backends.Record), placed func(string)) error {
	key, end := b.prefix+name, clientv3.WithRange(last+"\x00")
	// A remembered revision could be compacted, again and again; the one just
	// read is not.
	answer, err := b.client.Get(ctx, key, end)
	if err != nil {
		return err
	}
	var r backends.Record
	for _, kv := range answer.Kvs {
		switch string(kv.Key) {
		case key:
			if r, err = decode(name, kv.Value); err != nil {
				return err
			}
		case last:
			placed(string(kv.Value))
		}
	}
	changed(r)
	ctx, cancel := context.WithCancel(ctx)
	answers := b.client.Watch(ctx, key, end, clientv3.WithRev(answer.Header.Revision+1))
	defer func() {
		cancel()
		for range answers { // closed once nothing of the watch is left
		}
	}()
	for answer := range answers {
		if err := answer.Err(); err != nil {
			return err
		}
		if e := latest(answer.Events, key); e != nil {
			r := backends.Record{}
			if e.Type != clientv3.EventTypeDelete {
				if r, err = decode(name, e.Kv.Value); err != nil {
					return err
				}
			}
			changed(r)
		}
		if e := latest(answer.Events, last); e != nil && last != key {
			placed(string(e.Kv.Value)) // empty if it was deleted
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errWatchEnded
}

// latest returns the last event of a key, or nil.
func latest(events []*clientv3.Event, key string) *clientv3.Event {
	for i := len(events) - 1; i >= 0; i-- {
		if string(events[i].Kv.Key) == key {
			return events[i]
		}
	}
	return nil
}
