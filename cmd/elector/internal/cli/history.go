package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector/operate"
)

// A termRow is an operate.Term in JSON.
type termRow struct {
	ID     string   `json:"id"`
	Token  uint64   `json:"token"`
	Start  string   `json:"start,omitempty"`
	End    string   `json:"end,omitempty"`
	Lasted *float64 `json:"lasted_seconds,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

func (t *tool) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "Print who led, from when to when, and why no longer",
		Long: `History prints the latest terms of an election, the oldest first: at most eight. The
times are those of the clocks of the machines that led; a term that goes on has lasted
until now on this machine's.

A term ended because the leader resigned; was requested to resign; was unhealthy; lost
the lease because its work took too long to stop; was deposed; was cancelled before it
led; or expired, when a machine took over, perhaps the same one. The short term of
elector pause is paused. A term of a version that keeps no history is unknown.

Fields in JSON, one object a line: id, token, start, end, lasted_seconds, reason. A
term that goes on has no end and no reason.

Exit codes: 0; 3 no election has ever used the name. The others are those of elector.`,
		Example: `  elector history invoices
  elector history invoices -o json | jq -r 'select(.reason == "expired").id'`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE:              func(c *cobra.Command, args []string) error { return t.history(c.Context(), args[0]) },
	}
}

func (t *tool) history(ctx context.Context, name string) error {
	p, err := t.printer("id", "token", "start", "end", "lasted", "reason")
	if err != nil {
		return err
	}
	e, done, err := t.observer(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	terms, err := e.Operator().History(ctx)
	if err != nil {
		return err
	}
	if len(terms) == 0 {
		l, err := e.Leader(ctx)
		switch {
		case err != nil:
			return err
		case never(l):
			return exitCode{exitVacant, e.unused()}
		}
	}
	for _, term := range terms {
		r := termRow{ID: term.ID, Token: term.Token, Start: stamp(term.Start), End: stamp(term.End), Reason: term.Reason}
		text := ""
		if d, known := lasted(term, time.Now()); known {
			seconds := d.Seconds()
			r.Lasted, text = &seconds, d.String()
		}
		p.row(r, r.ID, r.Token, r.Start, r.End, text, r.Reason)
	}
	return p.flush()
}

// lasted returns how long a term was, or has been; false if that is not known, or clocks
// disagree.
func lasted(term operate.Term, now time.Time) (time.Duration, bool) {
	end := term.End
	if end.IsZero() && term.Reason == "" {
		end = now
	}
	if term.Start.IsZero() || end.Before(term.Start) { // also an end that is not known
		return 0, false
	}
	d := end.Sub(term.Start)
	if d >= time.Minute {
		return d.Round(time.Second), true
	}
	return d.Round(time.Millisecond), true
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}
