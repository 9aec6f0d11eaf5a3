package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/operate"
)

func (t *tool) resignCommand() *cobra.Command {
	var to string
	var token uint64
	var wait time.Duration
	c := &cobra.Command{
		Use:   "resign NAME",
		Short: "Ask the leader to resign, and print who leads next",
		Long: `Resign asks the leader of an election, wherever it runs, to end its work and to resign.
The leader meets the request at its next renewal, 4.5 s later at most by default. Its
lease stays valid until the work has ended. Then another candidate leads; the one that
--to names tries first. The former leader waits until another one has led, or for 1.1
times its TTL.

Resign waits for the next leader and prints it as elector leader does. It never ends
a lease by itself. After --wait the request stays; the error says what the leader was
seen to do.

Without another candidate the leader's work ends, and 1.1 TTL later the same leader
leads again: resign cannot know before whether one waits. It then ends with 5.

With --if-token, resign asks only the leader with that token, and none that came later.

Exit codes: 0 another leader, the one of --to if it is given; 3 there was no leader, or
none has followed; 4 the leader is gone, and its lease has lapsed; 5 the same leader
leads again, because no other candidate came; 6 another one leads, and not the one of
--to, which did not come; 75 the leader has not resigned within --wait, another
request that does not name the candidate of --to is pending, or the leader with
--if-token leads no more and another one does. The others are those of elector.`,
		Example: `  elector resign invoices
  elector resign invoices --to host-2 --wait 2m`,
		Args:              arguments(1, "the name of an election"),
		ValidArgsFunction: t.completeElection,
		RunE: func(c *cobra.Command, args []string) error {
			return t.resign(c.Context(), args[0], elector.Token(token), to, wait)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the id of the candidate that should lead next")
	c.RegisterFlagCompletionFunc("to", t.completeCandidate)
	c.Flags().Uint64Var(&token, "if-token", 0, "ask only the leader with this token")
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait for the next leader")
	return c
}

func (t *tool) resign(ctx context.Context, name string, token elector.Token, to string, wait time.Duration) error {
	if wait <= 0 {
		return usage("--wait is %v, not above 0", wait)
	}
	p, err := t.printer("election", "state", "id", "token", "ttl", "value", "successor", "request")
	if err != nil {
		return err
	}
	e, done, err := t.candidate(ctx, name, &elector.Options{ID: person()})
	if err != nil {
		return err
	}
	defer done()
	before, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	if never(before) {
		return exitCode{exitVacant, e.unused()}
	}
	only := token != 0
	if !only && !before.Vacant() {
		token = before.Token
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = e.Operator().RequestResign(ctx, operate.ResignRequest{Token: uint64(token), To: to})
	switch {
	case errors.Is(err, elector.ErrLost):
		return exitCode{exitLapsed, err}
	case errors.Is(err, elector.ErrNotLeader):
		if l, unread := e.Leader(ctx); only && unread == nil && !l.Vacant() {
			return exitCode{exitHeld, err}
		}
		return exitCode{exitVacant, err}
	case errors.Is(err, elector.ErrRequested), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, elector.ErrUnavailable):
		return exitCode{exitHeld, err}
	case err != nil:
		return err
	}
	next := elector.Leader{Token: token}
	for l, err := range e.Observe(ctx) {
		if err != nil && (!errors.Is(err, context.DeadlineExceeded) || errors.Is(err, elector.ErrUnavailable) || backends.Permanent(err)) {
			return err
		}
		if err != nil {
			break // --wait is over, and no process leads
		}
		if next = l; !l.Vacant() {
			break
		}
	}
	r := electorhttp.StatusOf(name, next)
	p.row(r, r.Election, r.State, r.ID, r.Token, next.TTL, r.Value, r.Successor, requestIn(r))
	if err := p.flush(); err != nil {
		return err
	}
	return outcome(before, next, to, wait)
}

// outcome returns nil if another candidate leads, the one of --to if there is one.
func outcome(before, next elector.Leader, to string, wait time.Duration) error {
	missing := "no other candidate came"
	if to != "" {
		missing = fmt.Sprintf("candidate %q did not come", to)
	}
	switch {
	case next.Vacant():
		return exitCode{exitVacant, fmt.Errorf("%q has resigned, and %s within %v, so no process leads; the former leader may lead again %v after its resignation", before.ID, missing, wait, before.TTL*11/10)}
	case next.ID == before.ID:
		return exitCode{exitSame, fmt.Errorf("%s, so the same leader %q leads again, with token %d; start another candidate before, or stop this one to end its work", missing, next.ID, next.Token)}
	case to != "" && next.ID != to:
		return exitCode{exitOther, fmt.Errorf("%s: %q leads, with token %d; is %q the id of a candidate that runs now?", missing, next.ID, next.Token, to)}
	}
	return nil
}

// person names who runs the command, for the log of the leader.
func person() string {
	name := "elector resign"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
