package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

// A listRow is an election in JSON.
type listRow struct {
	Election string  `json:"election"`
	State    string  `json:"state"` // held, vacant, group or foreign; lapsed or gone with --watch
	ID       string  `json:"id"`
	Token    uint64  `json:"token"`
	TTL      float64 `json:"ttl_seconds"`
	Value    string  `json:"value"`

	// Of a group.
	Members    *int `json:"members,omitempty"`
	Partitions *int `json:"partitions,omitempty"`
}

func (t *tool) listCommand() *cobra.Command {
	var names, records, watch bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Print all elections of the store",
		Long: `List prints the elections that have a record in the store, in the order of their
names. An election is held, vacant, or foreign: not written by this program, or by a
newer version of it. A held record alone does not show whether its leader is alive.

With --watch, list goes on until SIGINT or SIGTERM: on a terminal it refreshes the table,
elsewhere it prints each election, and then a line for each change, with the time. An
election is lapsed once its leader has not renewed for 1.1 TTL while list watched; one
whose record is no longer there is gone. Each record is read every 2 s, or less often if
there are more than 100, and the names every 10 s. While the store does not answer, list
tries again.

A group of package partition is one row, in the state group: its seats, its plan and
its partitions are records of their own, which --records prints instead.

List reads each record, so it sends a request for each election; of a group it reads
the plan and the seats. With --names it prints the names only, and reads no record.

Fields in JSON, one object a line: election, state, id, token,
ttl_seconds, value; of a group also members and partitions, their numbers; with --watch
also time.`,
		Example: `  elector list
  elector list --names
  elector list --records
  elector list --watch
  elector list -o json | jq -r 'select(.state == "vacant").election'`,
		Args: arguments(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if watch && names {
				return usage("--watch and --names exclude each other")
			}
			if watch {
				ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				return t.watchList(ctx, records)
			}
			return t.list(c.Context(), names, records)
		},
	}
	c.Flags().BoolVar(&names, "names", false, "print the names only")
	c.Flags().BoolVar(&records, "records", false, "print all records, also those of groups")
	c.Flags().BoolVar(&watch, "watch", false, "go on, and show changes and lapsed leases")
	return c
}

var listColumns = []string{"election", "state", "id", "token", "ttl", "value"}

// cells are the row in a table.
func (r listRow) cells() []any {
	if r.State == "group" {
		return []any{r.Election, r.State, count(*r.Members, "member"), "-", "-", count(*r.Partitions, "partition")}
	}
	return []any{r.Election, r.State, r.ID, r.Token, time.Duration(r.TTL * float64(time.Second)), r.Value}
}

// lister opens a store that lists its elections.
func (t *tool) lister(ctx context.Context) (backends.Backend, backends.Lister, error) {
	b, err := t.openToLook(ctx)
	if err != nil {
		return nil, nil, err
	}
	l, ok := b.(backends.Lister)
	if !ok {
		b.Close()
		return nil, nil, usage("%s cannot list its elections; name one: elector leader NAME", b.Describe().Store)
	}
	return b, l, nil
}

func (t *tool) list(ctx context.Context, namesOnly, records bool) error {
	columns := listColumns
	if namesOnly {
		columns = columns[:1]
	}
	p, err := t.printer(columns...)
	if err != nil {
		return err
	}
	b, l, err := t.lister(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	names, err := l.List(ctx)
	if err != nil {
		return err
	}
	items := itemsOf(names, !records, read)
	if namesOnly {
		for _, i := range items {
			p.row(struct {
				Election string `json:"election"`
			}{i.name}, i.name)
		}
		return p.flush()
	}
	rows, err := readAll(ctx, b, items)
	longest := 0.0
	for _, r := range rows {
		if r.State != "" { // it was read
			p.row(r, r.cells()...)
		}
		if r.State == "held" {
			longest = max(longest, r.TTL)
		}
	}
	err = errors.Join(err, p.flush())
	if longest > 0 && p.format == "table" {
		t.say("held is what the records have; --watch shows within %v which leaders are gone", lapse(longest))
	}
	return err
}

// lapse is after how long a lease of so many seconds that is watched has lapsed.
func lapse(ttl float64) time.Duration {
	return time.Duration(ttl * 1.1 * float64(time.Second)).Round(time.Millisecond)
}

// An item is an election or a group to list.
type item struct {
	name string
	read func(context.Context, backends.Backend, string) (listRow, error)
}

// itemsOf returns what the names of records stand for, in the order of the names.
func itemsOf(names []string, groups bool, read func(context.Context, backends.Backend, string) (listRow, error)) (items []item) {
	if groups {
		var found []partition.Records
		found, names = partition.Find(names)
		for _, g := range found {
			items = append(items, item{g.Group, readGroup})
		}
	}
	for _, name := range names {
		items = append(items, item{name, read})
	}
	slices.SortStableFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return items
}

// readers is how many records are read at a time.
const readers = 8

// readAll reads the items. One that is gone meanwhile has no state. After an
// error it reads no more.
func readAll(ctx context.Context, b backends.Backend, items []item) ([]listRow, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rows, next := make([]listRow, len(items)), make(chan int)
	var all sync.WaitGroup
	for range min(readers, len(items)) {
		all.Go(func() {
			for i := range next {
				var err error
				if rows[i], err = items[i].read(ctx, b, items[i].name); err != nil {
					cancel(err) // the first counts
				}
			}
		})
	}
	for i := range items {
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
	row := listRow{Election: name, State: "held", ID: r.Holder, Token: r.Token, TTL: r.TTL.Seconds(), Value: r.Value}
	if r.Vacant() {
		row.State = "vacant"
	}
	return row, nil
}

// completeElection suggests the names of elections and groups to a shell.
func (t *tool) completeElection(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, i := range itemsOf(t.names(c.Context()), true, nil) {
			names = append(names, i.name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeCandidate suggests ids of candidates to --to: the one that is next, and those
// that have led, without the leader.
func (t *tool) completeCandidate(c *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
	defer cancel()
	e, done, err := t.observer(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer done()
	l, _ := e.Leader(ctx)
	terms, _ := e.Operator().History(ctx)
	ids = []string{l.Successor}
	for _, term := range slices.Backward(terms) {
		ids = append(ids, term.ID)
	}
	seen := map[string]bool{"": true, l.ID: true}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before || plain(id) != id
	})
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// names returns the names of the store's records for a shell, none if that fails.
func (t *tool) names(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	b, err := t.openToLook(ctx)
	if err != nil {
		return nil
	}
	defer b.Close()
	if l, ok := b.(backends.Lister); ok {
		names, _ := l.List(ctx)
		return names
	}
	return nil
}
