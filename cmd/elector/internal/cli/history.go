package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// A termRow is an elector.Term in JSON.
type termRow struct {
	ID     string `json:"id"`
	Token  uint64 `json:"token"`
	Start  string `json:"start,omitempty"`
	End    string `json:"end,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (t *tool) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "Print who led, from when to when, and why no longer",
		Long: `History prints the latest terms of an election, the oldest first: at most eight. The
times are those of the clocks of the machines that led.

A term ended because the leader resigned; was requested to resign; was unhealthy; lost
the lease and released it later; was deposed; was cancelled before it led; or expired,
when another machine took over. A term of a version that keeps no history is unknown.

Fields in JSON, one object a line: id, token, start, end, reason. A term that goes on
has no end and no reason.`,
		Example: `  elector history invoices
  elector history invoices -o json | jq -r 'select(.reason == "expired").id'`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE:              func(c *cobra.Command, args []string) error { return t.history(c.Context(), args[0]) },
	}
}

func (t *tool) history(ctx context.Context, name string) error {
	p, err := t.printer("id", "token", "start", "end", "reason")
	if err != nil {
		return err
	}
	e, done, err := t.candidate(ctx, name, nil)
	if err != nil {
		return err
	}
	defer done()
	terms, err := e.History(ctx)
	if err != nil {
		return err
	}
	for _, term := range terms {
		r := termRow{term.ID, uint64(term.Token), stamp(term.Start), stamp(term.End), term.Reason}
		p.row(r, r.ID, r.Token, r.Start, r.End, r.Reason)
	}
	return p.flush()
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}
