package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/data"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A checked lease gives the answer of an earlier Check, as in a process that stood
// still right after it.
type checked struct{ answer backends.Acquisition }

// Acquisition implements [backends.Lease].
func (c checked) Acquisition() (backends.Acquisition, error) { return c.answer, nil }

// longest is the longest pause between Check and a guarded write, in TTLs: enough
// for a successor.
const longest = 2.5

// guard checks the lease for a write to the data in the store. send makes the
// write, mostly after a pause, and does not wait for it. The end of ctx ends the
// pause.
func (c *candidate) guard(ctx context.Context, r *history.Recorder, lease lease, number uint64) (send func()) {
	held, err := lease.Acquisition()
	if c.data == nil || err != nil {
		return func() {}
	}
	due := time.Now()
	if rand.IntN(4) > 0 {
		due = due.Add(time.Duration(rand.Float64() * longest * float64(c.task.TTL)))
	}
	return func() {
		c.late.Go(func() {
			pause(ctx, time.Until(due))
			r.Event(c.commit(context.WithoutCancel(ctx), checked{held}, r.Election, data.Write{Token: lease.Token(), Candidate: c.task.Candidate, Number: number}))
		})
	}
}

// commit returns what became of a guarded write.
func (c *candidate) commit(ctx context.Context, held checked, election string, w data.Write) history.Event {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	e := history.Event{Token: w.Token, Number: w.Number, Before: history.BootTime()}
	err := c.data.Write(ctx, held, election, w)
	switch {
	case err == nil:
		e.Kind = history.Committed
	case errors.Is(err, elector.ErrStale):
		e.Kind = history.Stale
	default:
		e.Kind, e.Detail = history.Doubtful, err.Error()
	}
	return e
}
