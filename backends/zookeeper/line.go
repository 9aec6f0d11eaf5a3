package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

// placePath is the path of the place in line, which ends with the session that
// created it.
func placePath(path string) string { return path + "/next" }

// WatchLine implements [backends.Liner], with the errors of Load. If only the place
// cannot be read, it shows none from then on.
func (b *Backend) WatchLine(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
	return b.handle.Watch(ctx, name, func(ctx context.Context) error {
		shown := ""
		return b.follow(ctx, b.record(name, changed), &followed{path: placePath(b.path(name)), show: func(r *reading) error {
			if place := string(r.data); place != shown {
				shown = place
				b.saw(name, place)
				placed(place)
			}
			return nil
		}})
	})
}

// maxPlaces is how many places a handle has at most. The servers end a session by one
// transaction with the paths of its ephemeral nodes, which must stay far below
// jute.maxbuffer.
const maxPlaces = 1000

// mayTake counts a place, unless the handle has as many as it may.
func (b *Backend) mayTake(name, place string) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if _, counted := b.places[name]; !counted && len(b.places) >= maxPlaces {
		return false
	}
	if b.places == nil {
		b.places = map[string]string{}
	}
	b.places[name] = place
	return true
}

// saw forgets a place of this handle that another one has replaced.
func (b *Backend) saw(name, place string) {
	if place != "" {
		b.forget(name, func(ours string) bool { return ours != place })
	}
}

func (b *Backend) forget(name string, gone func(ours string) bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if gone(b.places[name]) {
		delete(b.places, name)
	}
}

// SwapPlace implements [backends.Liner]. A place beyond maxPlaces is lost.
func (b *Backend) SwapPlace(ctx context.Context, name, prev, next string) error {
	path := placePath(b.path(name))
	return b.handle.SwapPlace(ctx, name, func(ctx context.Context) error {
		if next != "" && !b.mayTake(name, next) {
			return nil
		}
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
		if err == nil && next == "" {
			b.forget(name, func(string) bool { return true })
		}
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
