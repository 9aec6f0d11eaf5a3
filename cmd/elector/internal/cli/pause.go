package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/operate"
)

func (t *tool) pauseCommand() *cobra.Command {
	var p operate.Pause
	var wait time.Duration
	c := &cobra.Command{
		Use:   "pause NAME",
		Short: "Let no candidate lead until elector resume: for maintenance",
		Long: `Pause ends the leader's term in an orderly way, and then no candidate leads until
elector resume, or until --for is over. It asks the leader to resign, as elector resign
does, and then leads for a moment itself, so that the pause stands in the record. If the
leader is dead, that takes until its lease has lapsed: 1.1 times the TTL.

Each candidate counts --for on its own clock, from when it has first seen the pause; one
that starts later counts from then, and one that runs for less than --for, as a cron job
does, never sees its end. Candidates of a version of this library that does not know
pauses do not lead either, whatever --for is, until elector resume.

elector leader shows the pause, who has made it and why.

Exit codes: 0 paused; 3 the election never had a leader: is the name right, and the
store?; 70 this process was stopped while it led, and another one may lead; 75 the
election is paused already, was resumed at once, or the leader has not resigned within
--wait: the request to resign then stays, and the election is not paused. The others are
those of elector.`,
		Example: `  elector pause invoices --reason "migration 42"
  elector pause invoices --for 1h && migrate && elector resume invoices`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("for") && p.For <= 0 {
				return usage("--for is %v, not above 0; without it the pause lasts until elector resume", p.For)
			}
			return t.operate(c.Context(), args[0], wait, func(ctx context.Context, o operate.Operator) error {
				err := o.Pause(ctx, p)
				if errors.Is(err, operate.ErrNotPaused) { // no more
					return exitCode{exitHeld, err}
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&p.Reason, "reason", "", "why, for people; at most 256 bytes")
	c.Flags().DurationVar(&p.For, "for", 0, "how long, such as 1h (default until elector resume)")
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait for the leader to resign")
	return c
}

func (t *tool) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "End a pause",
		Long: `Resume ends the pause of an election, also one whose time is over: its candidates may
lead again.

Exit codes: 0 resumed; 3 the election is not paused. The others are those of elector.`,
		Example:           `  elector resume invoices`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE: func(c *cobra.Command, args []string) error {
			return t.operate(c.Context(), args[0], time.Minute, func(ctx context.Context, o operate.Operator) error { return o.Resume(ctx) })
		},
	}
}

// operate pauses or resumes an election, within wait.
func (t *tool) operate(ctx context.Context, name string, wait time.Duration, do func(context.Context, operate.Operator) error) error {
	if wait <= 0 {
		return usage("--wait is %v, not above 0", wait)
	}
	e, done, err := t.candidate(ctx, name, &elector.Options{ID: person()})
	if err != nil {
		return err
	}
	defer done()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = do(waiting, e.Operator())
	switch {
	case errors.As(err, new(exitCode)), errors.Is(err, elector.ErrLost):
		return err
	case errors.Is(err, elector.ErrPaused):
		return exitCode{exitHeld, err}
	case errors.Is(err, operate.ErrNotPaused), errors.Is(err, elector.ErrNotLeader):
		if g, unread := t.groupOf(ctx, name); unread == nil && g != nil {
			return usage("%s is a group of package partition, and only elections can be paused; elector partitions drain takes a member out", name)
		}
		return exitCode{exitVacant, err}
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, backends.ErrUnavailable):
		return exitCode{exitHeld, fmt.Errorf("not within %v: %w", wait, err)}
	}
	return err
}
