package chaos

import (
	"context"
	"errors"

	"github.com/elector-go/elector"
)

// moveFaults ask the leader to resign, as an operator does. That moves the lead, and
// costs no lease.
var moveFaults = []Fault{
	{Name: "request to resign", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		to := ""
		if r.random.IntN(2) == 0 {
			to = r.slots[r.random.IntN(len(r.slots))].name
		}
		return r.move(ctx, r.asked, to)
	}},
	{Name: "request to resign, and the successor killed", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		leader, err := r.leader()
		if err != nil {
			return err
		}
		successor := r.slots[r.random.IntN(len(r.slots))]
		if successor == leader {
			return errMissed
		}
		return errors.Join(successor.kill(), r.move(ctx, r.asked, successor.name), r.start(successor))
	}},
}

// move requests the resignation of the leader of an election. It returns errMissed if nobody leads
// just then, or if the candidate that should lead next does already.
func (r *Round) move(ctx context.Context, asked *elector.Elector, to string) error {
	limited, cancel := context.WithTimeout(ctx, 2*r.place.Rules.TTL)
	defer cancel()
	defer r.breaks("request to resign", "")()
	err := asked.RequestResign(limited, elector.ResignRequest{To: to})
	switch {
	case errors.Is(err, elector.ErrInvalid), errors.Is(err, elector.ErrNotLeader), errors.Is(err, elector.ErrRequested):
		return errMissed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil // what else went wrong is for the checker to see
}
