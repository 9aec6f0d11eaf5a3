package history

import (
	"time"

	"github.com/elector-go/elector"
)

// Overtaken returns those events of an election that tell of a guarded write which
// the store answered, and which was sent when a newer acquisition had been
// acknowledged: each Committed among them is a stale write. Writes whose
// acquisition was written back by hand before the answer are none: the record
// shows it as the latest then.
func Overtaken(events []Event) (writes []Event) {
	var acquired []Event // each with a higher token than those before
	restored := map[elector.Token]time.Duration{}
	for _, e := range events {
		_, again := restored[e.Token]
		switch {
		case e.Kind == Acquired && (len(acquired) == 0 || e.Token > acquired[len(acquired)-1].Token):
			acquired = append(acquired, e)
		case e.Kind == Restored && !again:
			restored[e.Token] = e.Before
		}
	}
	for _, e := range events {
		if e.Kind != Committed && e.Kind != Stale {
			continue
		}
		if at, ok := restored[e.Token]; ok && at <= e.At {
			continue
		}
		for _, a := range acquired {
			if a.Token > e.Token && a.At <= e.Before {
				writes = append(writes, e)
				break
			}
		}
	}
	return writes
}
