package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

func (t *tool) partitionsCommand() *cobra.Command {
	var each, watch bool
	c := &cobra.Command{
		Use:   "partitions NAME",
		Short: "Print which member of a group owns which partitions",
		Long: `Partitions prints the members of a group of package partition, and what each one
owns, as the store has it. A last row has the partitions that no member owns. With
--each it prints the partitions instead: the owner of each, since when, with which
token; planned, the member that should own it, and why it does not yet.

With --watch it prints each partition, and then each one that changes, until SIGINT or
SIGTERM, and ends with 0.

Partitions reads each partition's record, many in one request where the store can.

Fields in JSON, one object a line: member, seat, weight; state, which is ready,
leaving, drained or none; owned and planned, how many partitions the member owns and
should own; partitions, the numbers of those that it owns; value. With --each or
--watch: partition, owner, since, token, planned, why.

Exit codes: 0; 3 some partition has no owner. The others are those of elector.`,
		Example: `  elector partitions orders
  elector partitions orders --each -o json | jq -r 'select(.owner == "").partition'
  elector partitions drain orders host-3`,
		Args: arguments(1, "the name of a group"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return t.partitions(ctx, args[0], each, watch)
		},
	}
	c.Flags().BoolVar(&each, "each", false, "print a line for each partition")
	c.Flags().BoolVar(&watch, "watch", false, "print each partition, and then each that changes")
	c.AddCommand(&cobra.Command{
		Use:   "drain NAME MEMBER",
		Short: "Make a member of a group hand over all that it owns",
		Long: `Drain makes a member, by its id, hand all its partitions to the others. It stays a
member that owns nothing until undrain, or until it leaves the group.

Drain waits until the member owns nothing. If it is stopped, the hand-over goes on.

Exit codes: 0 the member owns nothing; 64 there is no such member, or no other one. The
others are those of elector.`,
		Example: `  elector partitions drain orders host-3`,
		Args:    arguments(2, "the name of a group and the id of a member"),
		RunE: func(c *cobra.Command, args []string) error {
			return t.drain(c.Context(), args[0], args[1])
		},
	}, &cobra.Command{
		Use:     "undrain NAME MEMBER",
		Short:   "Let a member of a group own partitions again",
		Long:    "Undrain ends drain: the next plan counts the member again.",
		Example: `  elector partitions undrain orders host-3`,
		Args:    arguments(2, "the name of a group and the id of a member"),
		RunE: func(c *cobra.Command, args []string) error {
			g, done, err := t.group(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer done()
			return g.UndrainMember(c.Context(), args[1])
		},
	}, &cobra.Command{
		Use:   "resize NAME NUMBER",
		Short: "Change the number of partitions of a group that has no members now",
		Long: `Resize changes the number of partitions of a group. Stop all members before, and start
them with the new number: keys belong to other partitions then. Partitions that stay
keep their fencing tokens.

If a member has crashed, resize waits until its lease has ended.

Exit codes: 0 done; 75 a member runs; 64 there is no such group. The others are those of
elector.`,
		Example: `  elector partitions resize orders 128`,
		Args:    arguments(2, "the name of a group and the number of partitions"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > partition.MaxPartitions {
				return usage("the number of partitions is %q, not from 1 to %d", args[1], partition.MaxPartitions)
			}
			return t.resize(c.Context(), args[0], n)
		},
	})
	return c
}

func (t *tool) resize(ctx context.Context, name string, partitions int) error {
	if err := backends.CheckName(name); err != nil {
		return usage("%v", err)
	}
	b, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return partition.Resize(ctx, b, name, partitions, &elector.Options{Logger: t.logger(), ID: person()})
}

// group opens the store and returns a group on it, which only looks. The caller calls done.
func (t *tool) group(ctx context.Context, name string) (g *partition.Group, done func(), err error) {
	if err := backends.CheckName(name); err != nil {
		return nil, nil, usage("%v", err)
	}
	b, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if g, err = partition.New(b, name, &partition.Options{Elector: elector.Options{Logger: t.logger(), ID: person()}}); err != nil {
		b.Close()
		return nil, nil, err
	}
	return g, func() { g.Close(); b.Close() }, nil
}

// drain returns once the member owns nothing.
func (t *tool) drain(ctx context.Context, name, member string) error {
	g, done, err := t.group(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	if err := g.DrainMember(ctx, member); err != nil {
		return err
	}
	for {
		owners, err := g.Owners(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(owners, func(o partition.Owner) bool { return o.ID == member || o.Planned == member }) {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A memberRow is a member of a group in JSON.
type memberRow struct {
	Member     string `json:"member"`
	Seat       int    `json:"seat"`
	Weight     int    `json:"weight"`
	State      string `json:"state"` // ready, leaving or drained; none for partitions without an owner
	Owned      int    `json:"owned"`
	Planned    int    `json:"planned"`
	Partitions string `json:"partitions"`
	Value      string `json:"value"`
}

// A partitionRow is a partition in JSON.
type partitionRow struct {
	Partition int    `json:"partition"`
	Owner     string `json:"owner"`
	Since     string `json:"since,omitempty"`
	Token     uint64 `json:"token"`
	Planned   string `json:"planned"`
	Why       string `json:"why,omitempty"` // the member that should own it does not
}

func (t *tool) partitions(ctx context.Context, name string, each, watch bool) error {
	columns := []string{"member", "seat", "weight", "state", "owned", "planned", "partitions", "value"}
	if each || watch {
		columns = []string{"partition", "owner", "since", "token", "planned", "why"}
	}
	p, err := t.printer(columns...)
	if err != nil {
		return err
	}
	g, done, err := t.group(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	if watch {
		return watchPartitions(ctx, p, g)
	}
	owners, err := g.Owners(ctx)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		return usage("the store has no group %q: no member has written its plan", name)
	}
	if each {
		printPartitions(p, owners)
	} else if err := printMembers(ctx, p, g, owners); err != nil {
		return err
	}
	if err := p.flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(owners, func(o partition.Owner) bool { return o.ID == "" }) {
		return exitCode{code: exitVacant}
	}
	return nil
}

func printMembers(ctx context.Context, p *printer, g *partition.Group, owners []partition.Owner) error {
	members, err := g.Members(ctx)
	if err != nil {
		return err
	}
	owned := map[string][]int{}
	for _, o := range owners {
		owned[o.ID] = append(owned[o.ID], o.Partition)
	}
	for _, m := range members {
		r := memberRow{m.ID, m.Seat, m.Weight, "ready", len(owned[m.ID]), m.Planned, ranges(owned[m.ID]), m.Value}
		switch {
		case m.Leaving:
			r.State = "leaving"
		case m.Drained:
			r.State = "drained"
		}
		p.row(r, r.Member, r.Seat, r.Weight, r.State, r.Owned, r.Planned, r.Partitions, r.Value)
	}
	if none := owned[""]; len(none) > 0 {
		r := memberRow{State: "none", Seat: -1, Owned: len(none), Partitions: ranges(none)}
		p.row(r, "-", "-", "-", r.State, r.Owned, "-", r.Partitions, "")
	}
	return nil
}

// ranges returns numbers in their order as text: 0-3,7.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		n := 1
		for i+n < len(numbers) && numbers[i+n] == numbers[i]+n {
			n++
		}
		if n == 1 {
			parts = append(parts, strconv.Itoa(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[i+n-1]))
		}
		i += n
	}
	return strings.Join(parts, ",")
}

func printPartitions(p *printer, owners []partition.Owner) {
	for _, o := range owners {
		r := partitionRow{o.Partition, o.ID, stamp(o.Since), uint64(o.Token), o.Planned, o.Waiting}
		if r.Why == "" && o.ID != o.Planned {
			r.Why = "it moves to the member that the plan gives it to"
		}
		p.row(r, r.Partition, r.Owner, r.Since, r.Token, r.Planned, r.Why)
	}
}

// watchPartitions prints what changes until ctx ends. While partitions move it reads them
// once in a second, and otherwise when members or the plan change.
func watchPartitions(ctx context.Context, p *printer, g *partition.Group) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan error)
	go func() {
		for _, err := range g.Observe(ctx) {
			select {
			case changed <- err:
			case <-ctx.Done():
			}
		}
	}()
	var shown []partition.Owner
	var again <-chan time.Time
	var err error
	for {
		select {
		case err = <-changed:
		case <-again:
		case <-ctx.Done():
		}
		var owners []partition.Owner
		if err == nil {
			owners, err = g.Owners(ctx)
		}
		if ctx.Err() != nil {
			return nil // told to stop
		}
		if err != nil {
			return err
		}
		again = nil
		var news []partition.Owner
		for i, o := range owners {
			if i >= len(shown) || shown[i] != o {
				news = append(news, o)
			}
			if o.ID == "" || o.ID != o.Planned {
				again = time.After(time.Second)
			}
		}
		shown = owners
		printPartitions(p, news)
		if err := p.flush(); err != nil {
			return err
		}
	}
}
