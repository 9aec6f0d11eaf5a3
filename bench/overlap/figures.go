package overlap

import (
	"time"

	"github.com/elector-go/elector/bench/results"
)

// figuresOf are the rows as other measurements give theirs.
func figuresOf(rows []*row) (all []results.Figure) {
	for _, r := range rows {
		add := func(what, note string, of func(figure) time.Duration) {
			f := results.Figure{
				Subject: results.Overlap, Store: r.library.Store, Library: r.library.Name,
				What: string(r.scene) + ": " + what, Unit: "s", Note: note,
			}
			for _, round := range r.figures {
				f.Values = append(f.Values, of(round).Seconds())
			}
			if len(f.Values) == 0 {
				f.Note = "no round took place"
			}
			all = append(all, f)
		}
		open := ""
		for _, f := range r.figures {
			if f.atLeast {
				open = "at least: the old leader still believed when a round was over, five TTLs after the cut"
			}
		}
		add("both believe that they lead", open, func(f figure) time.Duration { return f.both })
		add("from the cut until the old leader no longer believes", open, func(f figure) time.Duration { return f.held })
		add("from the cut until the successor believes", "", func(f figure) time.Duration { return f.elected })
	}
	return all
}
