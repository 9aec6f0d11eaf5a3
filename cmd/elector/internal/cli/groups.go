package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

// readGroup returns the row of a group in elector list. Its records are read only as far as
// that takes: the plan and the seats.
func readGroup(ctx context.Context, b backends.Backend, name string) (listRow, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g, err := partition.New(b, name, &partition.Options{Elector: elector.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		return listRow{}, err
	}
	defer g.Close()
	s, err := g.Assignment(ctx)
	switch {
	case errors.Is(err, elector.ErrForeignRecord):
		return listRow{Election: name, State: "foreign"}, nil
	case err != nil:
		return listRow{}, err
	}
	members, partitions := len(s.Members), s.Partitions()
	return listRow{Election: name, State: "group", Members: &members, Partitions: &partitions}, nil
}

// A groupRow is a group in the JSON of elector leader.
type groupRow struct {
	Election   string   `json:"election"`
	State      string   `json:"state"` // group
	Members    []string `json:"members"`
	Partitions int      `json:"partitions"`
}

// groupOf returns the row of a group, nil if the store has no group of that name.
func (t *tool) groupOf(ctx context.Context, name string) (*groupRow, error) {
	g, done, err := t.group(ctx, name, t.openToLook)
	if errors.Is(err, elector.ErrName) {
		return nil, nil // too long for a group
	}
	if err != nil {
		return nil, err
	}
	defer done()
	r := &groupRow{Election: name, State: "group", Members: []string{}}
	s, err := g.Assignment(ctx)
	if errors.Is(err, elector.ErrForeignRecord) {
		// The record in the place of the plan may be an election's.
		if members, other := g.Members(ctx); other == nil && len(members) == 0 {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if r.Partitions = s.Partitions(); r.Partitions == 0 && len(s.Members) == 0 {
		return nil, nil
	}
	for _, m := range s.Members {
		r.Members = append(r.Members, m.ID)
	}
	return r, nil
}

// print prints a group in the place of an election.
func (r *groupRow) print(p *printer) error {
	text := count(len(r.Members), "member")
	if len(r.Members) > 0 {
		text += ": " + enumerate(r.Members, 8)
	}
	p.row(r, r.Election, r.State, text, "-", "-", count(r.Partitions, "partition"), "", "")
	if err := p.flush(); err != nil {
		return err
	}
	if len(r.Members) == 0 {
		return exitCode{code: exitVacant}
	}
	return nil
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// enumerate returns the first texts, and how many there are more.
func enumerate(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// moves returns what becomes of a partition that the member does not own which the plan gives
// it to, or that no process owns; empty if nothing does.
func moves(o partition.Owner, members []partition.Member) string {
	if o.ID == "" {
		if o.Planned == "" {
			return o.Waiting + "; the plan gives it to no member that is there"
		}
		return o.Waiting + "; the plan gives it to " + o.Planned
	}
	if o.ID == o.Planned {
		return ""
	}
	why := "the plan gives it to a member that is gone"
	if o.Planned != "" {
		why = "the plan gives it to " + o.Planned
	}
	owner := slices.IndexFunc(members, func(m partition.Member) bool { return m.ID == o.ID })
	switch {
	case owner >= 0 && members[owner].Leaving:
		why += ", as " + o.ID + " leaves the group"
	case owner >= 0 && members[owner].Drained:
		why += ", as " + o.ID + " is drained"
	}
	return why + "; the worker of " + o.ID + " has not returned yet"
}

// reasons returns the most frequent reasons, and how many partitions each is about.
func reasons(of []string) string {
	counts := map[string]int{}
	for _, why := range of {
		counts[why]++
	}
	var texts []string
	for why := range counts {
		texts = append(texts, why)
	}
	slices.SortFunc(texts, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	more := len(texts) - 3
	texts = texts[:min(3, len(texts))]
	for i, why := range texts {
		texts[i] = fmt.Sprintf("%s (%d)", why, counts[why])
	}
	if more > 0 {
		texts = append(texts, count(more, "other reason"))
	}
	return strings.Join(texts, "; ")
}

// completeGroup suggests the names of groups to a shell.
func (t *tool) completeGroup(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	groups, _ := partition.Find(t.names(c.Context()))
	var names []string
	for _, g := range groups {
		names = append(names, g.Group)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
