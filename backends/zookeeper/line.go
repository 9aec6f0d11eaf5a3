package zookeeper

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

// placePath is the path of the place in line, which ends with the session that
// created it.
func placePath(path string) string { return path + "/next" }

// WatchLine implements [backends.Liner], with the errors of Load. While only the place
// cannot be read, none is shown.
func (b *Backend) WatchLine(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
	return b.handle.Watch(ctx, name, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		var mutex sync.Mutex // so that one goroutine at a time calls
		var second sync.WaitGroup
		defer second.Wait()
		defer cancel()
		second.Go(func() {
			shown := ""
			b.follow(ctx, placePath(b.path(name)), false, func(r *reading) error {
				mutex.Lock()
				defer mutex.Unlock()
				if place := string(r.data); place != shown && ctx.Err() == nil {
					shown = place
					placed(place)
				}
				return nil
			})
		})
		return b.watch(ctx, name, func(r backends.Record) {
			mutex.Lock()
			defer mutex.Unlock()
			changed(r)
		})
	})
}

// SwapPlace implements [backends.Liner].
func (b *Backend) SwapPlace(ctx context.Context, name, prev, next string) error {
	path := placePath(b.path(name))
	return b.handle.SwapPlace(ctx, name, func(ctx context.Context) error {
		var ops []any
		if prev != "" {
			version, err := b.placeVersion(ctx, path, prev)
			if err != nil {
				return err
			}
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: version})
		}
		if next != "" {
			ops = append(ops, &zk.CreateRequest{Path: path, Data: []byte(next), Acl: b.acl, Flags: zk.FlagEphemeral})
		}
		_, refused, err := b.multi(ctx, ops)
		if refused >= 0 && (errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion)) {
			return backends.ErrConflict
		}
		return err
	})
}

// placeVersion returns the dataVersion of a place.
func (b *Backend) placeVersion(ctx context.Context, path, place string) (int32, error) {
	return call(ctx, b, func() (int32, error) {
		data, stat, err := b.conn.Get(path)
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && string(data) != place:
			return 0, backends.ErrConflict
		case err != nil:
			return 0, err
		}
		return stat.Version, nil
	})
}
