package report

import (
	"fmt"
	"slices"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// Guarded are the figures of the writes to data in a store, through its guard.
type Guarded struct {
	Store                       string
	Accepted, Refused, Doubtful int // Committed, Stale, Doubtful
	StaleTried, StaleAccepted   int // sent after a newer acquisition, and answered; see history.Overtaken
}

// GuardedWrites returns the figures of each store that has such data.
func GuardedWrites(h *history.History) (all []Guarded) {
	for _, e := range h.Elections {
		g := Guarded{Store: e.Store}
		events := h.Of(e.Name)
		for _, v := range events {
			switch v.Kind {
			case history.Committed:
				g.Accepted++
			case history.Stale:
				g.Refused++
			case history.Doubtful:
				g.Doubtful++
			}
		}
		for _, v := range history.Overtaken(events) {
			g.StaleTried++
			if v.Kind == history.Committed {
				g.StaleAccepted++
			}
		}
		i := slices.IndexFunc(all, func(g Guarded) bool { return g.Store == e.Store })
		switch {
		case g == Guarded{Store: e.Store}:
		case i < 0:
			all = append(all, g)
		default:
			all[i].merge(g)
		}
	}
	return all
}

func (g *Guarded) merge(o Guarded) {
	g.Accepted += o.Accepted
	g.Refused += o.Refused
	g.Doubtful += o.Doubtful
	g.StaleTried += o.StaleTried
	g.StaleAccepted += o.StaleAccepted
}

// String returns the figures in a line.
func (g Guarded) String() string {
	return fmt.Sprintf("Guarded writes to data in %s: %d tried, %d accepted, %d refused, %d failed; of these stale: %d tried, %d accepted.",
		g.Store, g.Accepted+g.Refused+g.Doubtful, g.Accepted, g.Refused, g.Doubtful, g.StaleTried, g.StaleAccepted)
}
