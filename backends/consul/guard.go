package consul

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// A guard is a key beside the record that stands for an acquisition: its name ends
// with the acquisition's nonce. The transaction that acquires or releases
// deletes all older ones.

// guards is what the guard keys of an election begin with.
func (b *Backend) guards(name string) string { return b.prefix + name + "/guard-" }

// succession replaces the guard of an election, after a change that is no renewal.
func (b *Backend) succession(name string, next backends.Record) []Operation {
	operations := []Operation{{Verb: "delete-tree", Key: b.guards(name)}}
	if !next.Vacant() {
		operations = append(operations, Operation{Verb: "set", Key: b.guards(name) + next.Attempt.Nonce})
	}
	return operations
}

// A RefusedError is the error of Commit if Consul cannot make one of the
// operations. Nothing was written.
type RefusedError struct {
	Operation int // its place among the operations, from 0
	Reason    string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("operation %d was refused, and nothing was written: %s", e.Operation, e.Reason)
}

// Commit makes the operations in one transaction, if the lease's acquisition is
// still the latest: see Fencing in the package comment. It uses the agent and the
// token of the lease's election. Commit takes one round trip, and at most 63
// operations. It returns what Consul answers to the operations. Its errors are
// those of Guard, and:
//
//   - ErrStale if another candidate has acquired the election since, or the lease
//     was resigned. Nothing was written, and the worker must stop.
//   - *[RefusedError] if Consul cannot make one of the operations: its cas
//     compares another index, for example. Nothing was written.
//   - ErrDenied if the token lacks a permission. Nothing was written.
//   - Any other error of the request. Whether something was written is unknown.
func Commit(ctx context.Context, lease backends.Lease, operations ...Operation) ([]Pair, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	const most = 64 << 20 // 64 values of half a megabyte, in base64
	var results []Pair
	var stale bool
	var mine *RefusedError
	err = c.base.Do(ctx, "writing under the lease of election "+c.election+" on "+c.base.Store(), func(ctx context.Context) (err error) {
		results, err = c.transact(ctx, append([]Operation{c.operation()}, operations...), most)
		r, refused := as[*refusal](err)
		switch {
		case !refused:
			return err
		case r.says(0, noSuchKey):
			stale = true
		case r.denied():
			return err
		default:
			mine = &RefusedError{r.operations[0].OpIndex - 1, short(r.operations[0].What)}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case stale:
		return nil, fmt.Errorf("writing under the lease of election %s on %s: %w: the record is no longer this lease's; nothing was written, and the worker must stop", c.election, c.base.Store(), backends.ErrStale)
	case mine != nil:
		return nil, fmt.Errorf("writing under the lease of election %s on %s: %w", c.election, c.base.Store(), mine)
	}
	if len(results) > 0 && results[0].Key == c.key { // which the token may not be allowed to read
		results = results[1:]
	}
	return results, nil
}

// Guard returns the operation "get" of a key that exists while the lease's
// acquisition is the latest, for a transaction of your own, with another client
// or another token. Renewals do not affect it. If it fails, the lease is stale.
// The transaction must have a write, or be a consistent read.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on Consul.
func Guard(lease backends.Lease) (Operation, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return Operation{}, err
	}
	return c.operation(), nil
}

// A condition is the key that exists as long as a lease's acquisition is the
// latest.
type condition struct {
	*Backend
	election, key string
}

func conditionOf(lease backends.Lease) (condition, error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "Consul")
	if err != nil {
		return condition{}, err
	}
	return condition{b, a.Election, b.guards(a.Election) + a.Record.Attempt.Nonce}, nil
}

func (c condition) operation() Operation { return Operation{Verb: "get", Key: c.key} }
