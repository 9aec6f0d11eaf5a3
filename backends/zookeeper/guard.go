package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// Multi makes the operations in one multi, if the lease's acquisition is still the
// latest and its holder was not deposed: see Fencing in the package comment. The
// connection must be to the ensemble that keeps the election. Multi takes one
// round trip, and blocks like [zk.Conn.Multi]. It returns the answers to the
// operations. Its errors are those of Guard, and:
//
//   - ErrStale if another candidate has acquired the election since, or the lease
//     was resigned, or its holder deposed. Nothing was written, and the worker
//     must stop.
//   - ErrDenied if the connection may not read the election's znodes. Nothing was
//     written.
//   - Any other error of the connection. If an answer has an error, nothing was
//     written; otherwise that is unknown.
func Multi(conn *zk.Conn, lease backends.Lease, operations ...any) ([]zk.MultiResponse, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	checks := c.checks()
	answers, err := conn.Multi(append(checks, operations...)...)
	for _, a := range answers[:min(len(checks), len(answers))] {
		switch {
		case errors.Is(a.Error, zk.ErrNoNode):
			return nil, fmt.Errorf("writing under the lease of election %s on %s: %w: the record is no longer this lease's, or the leader was deposed; nothing was written, and the worker must stop", c.election, c.store, backends.ErrStale)
		case errors.Is(a.Error, zk.ErrNoAuth):
			return nil, fmt.Errorf("writing under the lease of election %s on %s: %w: the connection must be allowed to read the children of %s; give it the election's login with AddAuth: %w", c.election, c.store, backends.ErrDenied, c.path, a.Error)
		}
	}
	return answers[min(len(checks), len(answers)):], err
}

// Guard returns checks that pass while the lease's acquisition is the latest and
// its holder is not deposed, for a multi of your own. Renewals do not affect them.
// If one of them fails with [zk.ErrNoNode], the lease is stale.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on ZooKeeper.
func Guard(lease backends.Lease) ([]any, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	return c.checks(), nil
}

// A condition is the znodes that exist as long as a lease's acquisition is the latest.
type condition struct{ store, election, path, id string }

func conditionOf(lease backends.Lease) (condition, error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "ZooKeeper")
	if err != nil {
		return condition{}, err
	}
	id, _, err := parseVersion(a.Record.Version)
	return condition{b.base.Store(), a.Election, b.path(a.Election), id}, err
}

func (c condition) checks() []any {
	return []any{exists(guardPath(c.path, c.id)), exists(leaderPath(c.path))}
}
