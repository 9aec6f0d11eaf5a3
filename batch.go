package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
)

// Leases that this process holds through one backend share requests for their
// renewals, if the backend is a backends.BatchSwapper. A renewal that is due waits a
// moment for others, and they go together; a refusal of one does not affect the
// others. Nothing else changes: each lease has its own goroutine and its own
// write with its own attempt, and counts from before it joined the batch, so from
// before the request was sent.

// gathering is the longest that a renewal waits for others.
const gathering = 2 * time.Millisecond

// mostBytes bounds the texts (IDs, values and extensions, before and after) of the
// records that share a request: stores take requests of a megabyte, and a byte
// may take six bytes in JSON.
const mostBytes = 128 << 10

// grid is the number of times in a renewal interval at which the leases of a
// process renew, while few requests can carry them all.
const grid = 4

// batches joins the renewals of the leases held through one backend.
type batches = sharer[backends.Change]

// sharedRenewals holds the batches of all backends through which this process leads.
var sharedRenewals = sharers[backends.Change]{of: map[backends.Backend]*batches{}}

// batchesOf adds a lease. It returns nil if the backend is no BatchSwapper: the leases
// then renew one by one.
func batchesOf(backend backends.Backend) *batches {
	b, ok := backend.(backends.BatchSwapper)
	if !ok {
		return nil
	}
	return sharedRenewals.enter(b, b.Describe().MaxSwaps, func() *batches { return newBatches(b) })
}

func newBatches(b backends.BatchSwapper) *batches {
	return &batches{
		bytes: func(r backends.Change) int { return chosen(r.Prev) + chosen(r.Next) },
		clash: func(a, b backends.Change) bool { return a.Name == b.Name },
		send: func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			if len(renewals) == 1 {
				only := renewals[0]
				r, err := b.Swap(ctx, only.Name, only.Prev, only.Next)
				return []backends.Outcome{{Record: r, Err: err}}
			}
			return b.SwapMany(ctx, renewals)
		},
	}
}

// nextRenewal is when to renew after a renewal that worked: one interval after it
// was sent, or up to a quarter of an interval earlier to share a request.
func (l *Lease) nextRenewal() time.Duration {
	every := l.e.o.RenewEvery
	next := l.status.Load().start.Mono + every
	if points := l.batches.points(); points > 0 {
		next -= next % max(every/points, 1)
	}
	return next
}

// sharing decides whether a lease's next renewal shares a request.
type sharing struct {
	shared  bool // the latest renewal did
	alone   int  // renewals that now go by themselves
	penalty int  // renewals that went by themselves after the last failure
}

// outcome records the result of the latest renewal. After a shared request that
// failed as a whole, one renewal goes by itself; after the next such failure
// three, then seven and so on up to 63: a store may take single writes while large
// requests hang.
func (s *sharing) outcome(f *failure) {
	switch {
	case !s.shared:
		s.alone = max(0, s.alone-1)
	case f == nil:
		s.penalty = 0
	case f.kind != conflicting && f.kind != presenceLost:
		s.penalty = min(2*s.penalty+1, 63)
		s.alone = s.penalty
	}
}

// sender returns how to send the next renewal: with others, if there are any.
func (l *Lease) sender() swapper {
	l.shares.shared = l.shares.alone == 0 && l.batches.points() > 0
	if !l.shares.shared {
		return l.e.backend.Swap
	}
	return func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
		return renewTogether(ctx, l.batches, l.e, backends.Change{Name: name, Prev: prev, Next: next})
	}
}

// renewTogether makes a renewal in a batch. It returns what Swap would.
func renewTogether(ctx context.Context, s *batches, e *Elector, r backends.Change) (backends.Record, error) {
	o, together := s.share(ctx, e, r, min(gathering, e.o.RequestTimeout/32))
	if together == 0 {
		return s.backend.Swap(ctx, r.Name, r.Prev, r.Next)
	}
	if o.Err == nil && o.Record.Attempt != r.Next.Attempt {
		return backends.Record{}, fmt.Errorf("%w: the backend answered with another renewal in the place of this one", ErrUnavailable)
	}
	if together > 1 && o.Err != nil {
		if k := kindOf(o.Err); k == untried || k.permanent() {
			// The store may have refused another renewal, so this one goes by
			// itself. That is safe even if this one was applied: it is the same
			// write, and only one of the two can find the version that both
			// replace.
			return s.backend.Swap(ctx, r.Name, r.Prev, r.Next)
		}
	}
	return o.Record, o.Err
}

// chosen counts the bytes of a record that its holder and other processes chose.
func chosen(r backends.Record) int { return len(r.Holder) + len(r.Value) + len(r.Extensions) }
