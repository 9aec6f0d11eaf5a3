package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// An office is what a candidate runs for: an election, or the partitions of a group.
type office interface {
	// run works while it leads, until ctx ends. Late writes come no later than the end
	// of late.
	run(ctx, late context.Context) error

	// read asks the store who leads.
	read(ctx context.Context)

	Close() error
}

// A lease is one on an office.
type lease interface {
	history.Lease
	backends.Lease
}

// An election has one leader.
type election struct {
	*elector.Elector
	c *candidate
}

// stand connects to the store.
func (c *candidate) stand(ctx context.Context) (office, error) {
	o := c.options()
	o.Priority = c.task.Priority
	o.Trace = c.recorder.Trace()
	e, err := elector.Open(ctx, c.task.URL, c.task.Election, &o)
	return election{e, c}, err
}

func (c *candidate) options() elector.Options {
	return elector.Options{ID: c.task.Candidate, TTL: c.task.TTL, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
}

func (e election) run(ctx, late context.Context) error {
	return e.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
		e.c.work(ctx, late, e.c.recorder, l)
		return nil
	})
}

func (e election) read(ctx context.Context) { e.c.recorder.Leader(ctx, e.Elector) }
