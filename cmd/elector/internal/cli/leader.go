package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electorhttp"
)

// A leaderRow is a Leader in JSON.
type leaderRow = electorhttp.Status

func (t *tool) leaderCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "leader NAME",
		Short: "Print who leads",
		Long: `Leader prints who leads an election, once, as the store has it. The answer may be out
of date at once: use it for display and routing.

A record alone does not show whether its leader is alive. With --watch, leader waits
until the leader renews or resigns, or its lease has lapsed: at most 1.1 times the TTL.

If NAME is a group of package partition, leader prints its members and the number of
its partitions; elector partitions NAME prints who owns them.

Fields in JSON: election; state, which is held, vacant, lapsed or paused; id, token
and value of the leader; ttl_seconds; unchanged_seconds, for how long leader has
seen the record as it is; and, if they are known, successor, the candidate that
should lead next, requested_by, who has requested the leader to resign, and
draining, true once the leader has met the request; and lossy, on a store that may lose
acknowledged writes, the reason why another process may lead at the same time. If the
election is paused: paused_by, pause_reason, and pause_seconds unless it lasts until
elector resume. Of a group: election; state, which is group; members, their ids;
partitions, their number.

Exit codes: 0 held, or a group with members; 3 vacant or paused; 4 lapsed, with
--watch. The others are those of elector.`,
		Example: `  elector leader invoices
  elector leader invoices --watch -o json
  elector leader invoices > /dev/null && echo "there is a leader"`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE: func(c *cobra.Command, args []string) error {
			return t.leader(c.Context(), args[0], watch)
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "wait until it is known whether the leader is alive")
	return c
}

func (t *tool) leader(ctx context.Context, name string, watch bool) error {
	p, err := t.printer("election", "state", "id", "token", "ttl", "value", "successor", "request")
	if err != nil {
		return err
	}
	e, done, err := t.observer(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	l, err := e.Leader(ctx)
	if err == nil && watch && !l.Vacant() {
		l, err = alive(ctx, e.Elector, l)
	}
	if err != nil {
		return err
	}
	if l.Vacant() && l.Token == 0 {
		if g, err := t.groupOf(ctx, name); err != nil || g != nil {
			if err == nil {
				err = g.print(p)
			}
			return err
		}
	}
	r := electorhttp.StatusOf(name, l)
	p.row(r, r.Election, r.State, r.ID, r.Token, l.TTL, r.Value, r.Successor, requestIn(r))
	if err := p.flush(); err != nil {
		return err
	}
	if never(l) {
		return exitCode{exitVacant, e.unused()}
	}
	if r.Lossy != "" {
		t.say("another process may lead at the same time: %s", plain(r.Lossy))
	}
	if r.State == "held" && !watch && p.format == "table" {
		t.say("held is what the record has; --watch shows within %v whether %q is alive", lapse(r.TTL), plain(r.ID))
	}
	switch r.State {
	case "vacant", "paused":
		return exitCode{code: exitVacant}
	case "lapsed":
		return exitCode{code: exitLapsed}
	}
	return nil
}

// requestIn is what a table has of a request to resign, or of a pause.
func requestIn(r leaderRow) string {
	switch {
	case r.State == "paused":
		note := "paused by " + r.PausedBy
		if r.PauseSeconds > 0 {
			note += " for " + time.Duration(r.PauseSeconds*float64(time.Second)).String()
		}
		if r.PauseReason != "" {
			note += ": " + r.PauseReason
		}
		return note
	case r.Draining:
		return r.RequestedBy + " (draining)"
	}
	return r.RequestedBy
}

// alive waits until the leader has renewed or resigned, or its lease has lapsed.
func alive(ctx context.Context, e *elector.Elector, l elector.Leader) (elector.Leader, error) {
	seen := time.Now()
	for {
		select {
		case <-time.After(min(l.TTL/20, time.Second)):
		case <-ctx.Done():
			return l, ctx.Err()
		}
		since := time.Since(seen)
		next, err := e.Leader(ctx)
		// A record that stood as it is since the first look is older than that.
		if err != nil || next.Vacant() || next.Unchanged < since {
			return next, err
		}
	}
}

func (t *tool) observeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "observe NAME",
		Short: "Print each change of leader, until stopped",
		Long: `Observe prints who leads, and then a line for each change of leader or value: a new
leader, a leader that resigned, a lease that lapsed. It reconnects by itself, and ends
with 0 on SIGINT and SIGTERM.

Fields in JSON, one object a line: time, and those of elector leader.`,
		Example: `  elector observe invoices
  elector observe invoices -o json | jq -r .id`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return t.observe(ctx, args[0])
		},
	}
}

func (t *tool) observe(ctx context.Context, name string) error {
	p, err := t.printer("time", "state", "id", "token", "value")
	if err != nil {
		return err
	}
	e, done, err := t.observer(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	for l, err := range e.Observe(ctx) {
		if err != nil {
			if ctx.Err() != nil {
				return nil // told to stop
			}
			return err
		}
		if never(l) {
			t.say("%v; observe waits for one", e.unused())
		}
		now := time.Now().Format(time.RFC3339)
		r := struct {
			Time string `json:"time"`
			leaderRow
		}{now, electorhttp.StatusOf(name, l)}
		p.row(r, now, r.State, r.ID, r.Token, r.Value)
		if err := p.flush(); err != nil {
			return err
		}
	}
	return nil
}

// arguments makes a missing or superfluous argument a plain error.
func arguments(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("this command takes %s, and got %d arguments", what, len(args))
		}
		return nil
	}
}
