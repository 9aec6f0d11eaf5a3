package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

// Guard returns the checks that pass in a multi while the lease's acquisition is
// the latest and its holder's node exists: put them before the operations on your
// data, and a leader that was overtaken or deposed cannot write. Renewals do not
// disturb them. They take no round trip, and the data's user needs the right to
// read the election's znode.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on ZooKeeper. The multi must go to the
// ensemble that keeps the election. It fails with [zk.ErrNoNode] for one of these
// checks if the lease is stale: see Multi.
func Guard(holding backends.Holding) ([]any, error) {
	a, err := holding.Acquisition()
	if err != nil {
		return nil, err
	}
	b, ok := backends.As[*Backend](a.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: election %s is not on ZooKeeper, so ZooKeeper cannot guard a write with its lease", backends.ErrMisconfigured, a.Election)
	}
	guard, _, err := parseVersion(a.Record.Version)
	if err != nil {
		return nil, err
	}
	path := b.path(a.Election)
	return []any{&zk.CheckVersionRequest{Path: guardPath(path, guard), Version: -1}, present(path)}, nil
}

// Multi makes the operations under Guard, through a connection of the caller's,
// and returns their answers. It returns the errors of Guard and of the
// connection, and ErrStale if another acquisition has followed the lease's or its
// holder was deposed: nothing was written then, and the caller must stop.
//
// The client library ignores contexts: ctx is looked at before the request, and
// Multi then blocks until the library has an answer or loses its connection.
func Multi(ctx context.Context, conn *zk.Conn, holding backends.Holding, operations ...any) ([]zk.MultiResponse, error) {
	guard, err := Guard(holding)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	answers, err := conn.Multi(append(guard, operations...)...)
	for i, a := range answers {
		if i < len(guard) && errors.Is(a.Error, zk.ErrNoNode) {
			return nil, fmt.Errorf("%w: another acquisition has followed, or the holder was deposed; nothing was written", backends.ErrStale)
		}
	}
	return answers[min(len(guard), len(answers)):], err
}
