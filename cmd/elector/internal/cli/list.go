package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector/backends"
)

// A listRow is an election in JSON.
type listRow struct {
	Election string  `json:"election"`
	State    string  `json:"state"` // held, vacant or foreign
	ID       string  `json:"id"`
	Token    uint64  `json:"token"`
	TTL      float64 `json:"ttl_seconds"`
	Value    string  `json:"value"`
}

func (t *tool) listCommand() *cobra.Command {
	var names bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Print all elections of the store",
		Long: `List prints the elections that have a record in the store, in the order of their
names. An election is held, vacant, or foreign: not written by this program, or by a
newer version of it. A held record alone does not show whether its leader is alive;
elector leader NAME --watch finds out.

List reads each record, so it sends a request for each election. With --names it
prints the names only, and reads no record.

Fields in JSON, one object a line: election, state, id, token,
ttl_seconds, value.`,
		Example: `  elector list
  elector list --names
  elector list -o json | jq -r 'select(.state == "vacant").election'`,
		Args: arguments(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return t.list(c.Context(), names) },
	}
	c.Flags().BoolVar(&names, "names", false, "print the names only")
	return c
}

func (t *tool) list(ctx context.Context, namesOnly bool) error {
	columns := []string{"election", "state", "id", "token", "ttl", "value"}
	if namesOnly {
		columns = columns[:1]
	}
	p, err := t.printer(columns...)
	if err != nil {
		return err
	}
	b, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	l, ok := b.(backends.Lister)
	if !ok {
		return usage("%s cannot list its elections; name one: elector leader NAME", b.Describe().Store)
	}
	names, err := l.List(ctx)
	if err != nil {
		return err
	}
	if namesOnly {
		for _, name := range names {
			p.row(struct {
				Election string `json:"election"`
			}{name}, name)
		}
		return p.flush()
	}
	rows, err := readAll(ctx, b, names)
	for _, r := range rows {
		if r.State != "" { // it was read
			p.row(r, r.Election, r.State, r.ID, r.Token, time.Duration(r.TTL*float64(time.Second)), r.Value)
		}
	}
	return errors.Join(err, p.flush())
}

// readers is how many records are read at a time.
const readers = 8

// readAll reads the records. One that is gone meanwhile has no state. After an
// error it reads no more.
func readAll(ctx context.Context, b backends.Backend, names []string) ([]listRow, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rows, next := make([]listRow, len(names)), make(chan int)
	var all sync.WaitGroup
	for range min(readers, len(names)) {
		all.Go(func() {
			for i := range next {
				var err error
				if rows[i], err = read(ctx, b, names[i]); err != nil {
					cancel(err) // the first counts
				}
			}
		})
	}
	for i := range names {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	return rows, context.Cause(ctx)
}

func read(ctx context.Context, b backends.Backend, name string) (listRow, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := b.Load(ctx, name)
	switch {
	case errors.Is(err, backends.ErrForeignRecord):
		return listRow{Election: name, State: "foreign"}, nil
	case err != nil || !r.Exists():
		return listRow{}, err
	}
	row := listRow{name, "held", r.Holder, r.Token, r.TTL.Seconds(), r.Value}
	if r.Vacant() {
		row.State = "vacant"
	}
	return row, nil
}

// completeElection suggests the names of elections to a shell.
func (t *tool) completeElection(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
	defer cancel()
	b, err := t.open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer b.Close()
	if l, ok := b.(backends.Lister); ok {
		names, _ := l.List(ctx)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
