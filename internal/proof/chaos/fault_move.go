package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/operate"
)

// moveFaults ask the leader to resign, and pause the election, as an operator does. That
// moves the lead, and costs no lease.
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
	{Name: pause, on: anywhere, strike: func(ctx context.Context, r *Round) error { return r.pause(ctx) }},
}

const pause = "pause"

// pause pauses the election for a while, in which no candidate may lead, and resumes it. A
// pause whose write is applied later ends by itself.
func (r *Round) pause(ctx context.Context) error {
	if err := r.letNewLead(ctx); err != nil {
		return err
	}
	// Each of the two leads for a moment, and has been told to end from the start.
	for _, name := range []string{"pause by campaign", "resume by campaign"} {
		now := history.BootTime()
		r.tell(history.Event{Kind: history.Started, Candidate: name, Before: now, At: now})
		r.tell(history.Event{Kind: history.Terminated, Candidate: name, Before: now, At: now})
	}
	defer r.breaks(pause, "")()
	ttl, begun := r.place.Rules.TTL, time.Now()
	limited, cancel := context.WithTimeout(ctx, 2*ttl)
	defer cancel()
	if err := r.asked.Operator().Pause(limited, operate.Pause{Reason: "a fault", For: 3 * ttl}); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errMissed
	}
	if err := r.last(ctx, 0.2, 1); err != nil {
		return err
	}
	var l elector.Leader
	err := insist(ctx, func() (err error) {
		l, err = r.asked.Leader(ctx)
		return err
	})
	if err == nil && l.Pause == nil && time.Since(begun) < 2*ttl {
		return fmt.Errorf("a candidate has led a paused election: %+v", l)
	}
	return errors.Join(err, insist(ctx, func() error {
		if err := r.asked.Operator().Resume(ctx); !errors.Is(err, operate.ErrNotPaused) {
			return err
		}
		return nil
	}))
}

// letNewLead ends the process of an older build that leads, as an operator does, until a
// new one leads: the older ones may not understand a request to resign.
func (r *Round) letNewLead(ctx context.Context) error {
	for r.older != "" {
		leader, err := r.leader()
		if err != nil || leader.program != r.older {
			return err
		}
		position := r.log.Position()
		if err := leader.terminate(ctx); err != nil {
			return err
		}
		if _, err := r.written(ctx, position, r.name, func(name string) bool { return name != leader.name }); err != nil {
			return err
		}
		if err := errors.Join(r.start(leader), r.calm(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// move requests the resignation of the leader of an election. It returns errMissed
// if no candidate leads just then, or if the candidate that should lead next does
// already.
func (r *Round) move(ctx context.Context, asked *elector.Elector, to string) error {
	if err := r.letNewLead(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 2*r.place.Rules.TTL)
	defer cancel()
	defer r.breaks("request to resign", "")()
	err := asked.Operator().RequestResign(limited, operate.ResignRequest{To: to})
	switch {
	case errors.Is(err, elector.ErrInvalid), errors.Is(err, elector.ErrNotLeader), errors.Is(err, elector.ErrRequested):
		return errMissed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil // what else went wrong is for the checker to see
}
