package report

import (
	"fmt"
	"slices"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A Group are the figures of the groups in a store.
type Group struct {
	Store      string
	Rounds     int
	Partitions int // of each group
	Moves      int // times that a partition got another owner
	Faults     int // that struck
}

// Groups returns the figures of each store that has groups.
func Groups(h *history.History) (all []Group) {
	of := map[string]bool{}
	for _, e := range h.Elections {
		if e.Group == "" {
			continue
		}
		i := slices.IndexFunc(all, func(g Group) bool { return g.Store == e.Store })
		if i < 0 {
			i, all = len(all), append(all, Group{Store: e.Store})
		}
		first := !of[e.Group]
		of[e.Group] = true
		all[i].add(h.Of(e.Name), first)
	}
	for i := range all {
		all[i].Partitions /= all[i].Rounds
	}
	return all
}

// add adds the events of one partition. Only for the first one of a group the round counts,
// and what was broken.
func (g *Group) add(events []history.Event, first bool) {
	g.Partitions++
	if first {
		g.Rounds++
	}
	owner := ""
	for _, e := range events {
		switch {
		case e.Kind == history.Acquired:
			if owner != "" && owner != e.Candidate {
				g.Moves++
			}
			owner = e.Candidate
		case e.Kind == history.Quiet && first:
			g.Faults++
		}
	}
}

// String returns the figures in a line.
func (g Group) String() string {
	return fmt.Sprintf("Groups in %s: %s of %s, %s, %s.",
		g.Store, plural(g.Rounds, "round", "rounds"), plural(g.Partitions, "partition", "partitions"), plural(g.Moves, "move", "moves"), plural(g.Faults, "fault", "faults"))
}
