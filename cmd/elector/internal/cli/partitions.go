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
owns, as the store has it; moves, how many partitions come to the member and go from
it; and why those that it should own are not there yet. A last row has the partitions
that no member owns, and why. With --each it prints the partitions instead: the owner of
each, since when, with which token; planned, the member that should own it, and why it
does not yet.

With --watch it prints each partition, and then each one that changes, with the time,
until SIGINT or SIGTERM, and ends with 0. While the store does not answer it tries again.

Partitions reads each partition's record, many in one request where the store can. With
--watch it does so once in a second while partitions move, when members come or go, and
otherwise once in a minute; the plan and the seats it reads once in a second.

Fields in JSON, one object a line: member, seat, weight; state, which is ready,
leaving, drained or none; owned and planned, how many partitions the member owns and
should own; come and go, how many move; partitions, the numbers of those that it owns;
value; why. With --each: partition, owner, since, token, planned, why. With --watch:
time, and those of --each.

Exit codes: 0; 3 some partition has no owner. The others are those of elector.`,
		Example: `  elector partitions orders
  elector partitions orders --each -o json | jq -r 'select(.owner == "").partition'
  elector partitions drain orders host-3`,
		Args:              arguments(1, "the name of a group"),
		ValidArgsFunction: t.completeGroup,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if watch {
				return t.watchPartitions(ctx, args[0])
			}
			return t.partitions(ctx, args[0], each)
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

		ValidArgsFunction: t.completeGroup,
		RunE: func(c *cobra.Command, args []string) error {
			return t.drain(c.Context(), args[0], args[1])
		},
	}, &cobra.Command{
		Use:     "undrain NAME MEMBER",
		Short:   "Let a member of a group own partitions again",
		Long:    "Undrain ends drain: the next plan counts the member again.",
		Example: `  elector partitions undrain orders host-3`,
		Args:    arguments(2, "the name of a group and the id of a member"),

		ValidArgsFunction: t.completeGroup,
		RunE: func(c *cobra.Command, args []string) error {
			g, done, err := t.group(c.Context(), args[0], t.open)
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

		ValidArgsFunction: t.completeGroup,
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

// group opens the store and returns a group on it, which only
// looks. The caller calls done.
func (t *tool) group(ctx context.Context, name string, open func(context.Context) (backends.Backend, error)) (g *partition.Group, done func(), err error) {
	if err := backends.CheckName(name); err != nil {
		return nil, nil, usage("%v", err)
	}
	b, err := open(ctx)
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
	g, done, err := t.group(ctx, name, t.open)
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
	Come       int    `json:"come"`
	Go         int    `json:"go"`
	Partitions string `json:"partitions"`
	Value      string `json:"value"`
	Why        string `json:"why,omitempty"` // partitions do not come yet, or have no owner
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

var partitionColumns = []string{"partition", "owner", "since", "token", "planned", "why"}

func (t *tool) partitions(ctx context.Context, name string, each bool) error {
	columns := []string{"member", "seat", "weight", "state", "owned", "planned", "moves", "partitions", "value", "why"}
	if each {
		columns = partitionColumns
	}
	p, err := t.printer(columns...)
	if err != nil {
		return err
	}
	g, done, err := t.group(ctx, name, t.openToLook)
	if err != nil {
		return err
	}
	defer done()
	owners, err := g.Owners(ctx)
	if err != nil {
		return err
	}
	members, err := g.Members(ctx)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		return usage("the store has no group %q: no member has written its plan", name)
	}
	if each {
		for _, o := range owners {
			r := rowOf(o, members)
			p.row(r, r.cells()...)
		}
	} else {
		printMembers(p, members, owners)
	}
	if err := p.flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(owners, func(o partition.Owner) bool { return o.ID == "" }) {
		return exitCode{code: exitVacant}
	}
	return nil
}

func rowOf(o partition.Owner, members []partition.Member) partitionRow {
	return partitionRow{o.Partition, o.ID, stamp(o.Since), uint64(o.Token), o.Planned, moves(o, members)}
}

func (r partitionRow) cells() []any {
	return []any{r.Partition, r.Owner, r.Since, r.Token, r.Planned, r.Why}
}

func printMembers(p *printer, members []partition.Member, owners []partition.Owner) {
	owned, come, leave := map[string][]int{}, map[string][]string{}, map[string]int{}
	var without []string // why partitions have no owner
	for _, o := range owners {
		owned[o.ID] = append(owned[o.ID], o.Partition)
		why := moves(o, members)
		if o.ID == "" {
			without = append(without, o.Waiting)
		}
		if why != "" {
			come[o.Planned] = append(come[o.Planned], why)
			leave[o.ID]++
		}
	}
	for _, m := range members {
		r := memberRow{
			Member: m.ID, Seat: m.Seat, Weight: m.Weight, State: stateOf(m), Owned: len(owned[m.ID]), Planned: m.Planned,
			Come: len(come[m.ID]), Go: leave[m.ID], Partitions: ranges(owned[m.ID]), Value: m.Value, Why: reasons(come[m.ID]),
		}
		p.row(r, r.Member, r.Seat, r.Weight, r.State, r.Owned, r.Planned, fmt.Sprintf("+%d -%d", r.Come, r.Go), p.brief(r.Partitions), r.Value, r.Why)
	}
	if none := owned[""]; len(none) > 0 {
		r := memberRow{State: "none", Seat: -1, Owned: len(none), Go: leave[""], Partitions: ranges(none), Why: reasons(without)}
		p.row(r, "-", "-", "-", r.State, r.Owned, "-", fmt.Sprintf("-%d", r.Go), p.brief(r.Partitions), "", r.Why)
	}
}

func stateOf(m partition.Member) string {
	switch {
	case m.Leaving:
		return "leaving"
	case m.Drained:
		return "drained"
	}
	return "ready"
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

// brief shortens ranges that would make a table too wide.
func (p *printer) brief(ranges string) string {
	const most = 40
	if p.format != "table" || len(ranges) <= most {
		return ranges
	}
	first := ranges[:strings.LastIndexByte(ranges[:most], ',')+1]
	return fmt.Sprintf("%s… %d more", first, strings.Count(ranges[len(first):], ",")+1)
}
