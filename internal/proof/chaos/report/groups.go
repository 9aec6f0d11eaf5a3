package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A Group are the figures of the groups in a store.
type Group struct {
	Store      string
	Rounds     int
	Partitions int // of each group
	Moves      int // times that a partition got another owner
	Faults     int // that struck

	// From the end of a fault to the next write of a partition's owner, at most. A record
	// that was deleted or put back is awaited for longer.
	Slowest, Bound               time.Duration
	SlowestMissing, BoundMissing time.Duration
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
			i, all = len(all), append(all, Group{Store: e.Store, Bound: e.Rules.Takeover})
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
	owner, quiet := "", history.Event{}
	for _, e := range events {
		switch e.Kind {
		case history.Acquired:
			if owner != "" && owner != e.Candidate {
				g.Moves++
			}
			owner = e.Candidate
		case history.Quiet:
			quiet = e
			if first {
				g.Faults++
			}
		case history.Wrote:
			if quiet.At > 0 && e.Before >= quiet.At {
				took := e.At - quiet.At
				if quiet.Left > g.Bound {
					g.SlowestMissing, g.BoundMissing = max(g.SlowestMissing, took), quiet.Left
				} else {
					g.Slowest = max(g.Slowest, took)
				}
				quiet = history.Event{}
			}
		}
	}
}

// String returns the figures in a line.
func (g Group) String() string {
	text := fmt.Sprintf("Groups in %s: %s of %s, %s, %s; from the end of a fault to a write of each owner: %s at most, its bound is %s",
		g.Store, plural(g.Rounds, "round", "rounds"), plural(g.Partitions, "partition", "partitions"), plural(g.Moves, "move", "moves"), plural(g.Faults, "fault", "faults"), length(g.Slowest), length(g.Bound))
	if g.BoundMissing > 0 {
		text += fmt.Sprintf("; if a record was missing, %s, its bound is %s", length(g.SlowestMissing), length(g.BoundMissing))
	}
	return text + "."
}
