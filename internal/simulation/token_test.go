package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

var tokenCases = []simCase{
	{"tok/clock", tokenClock},
}

const year = 365 * 24 * time.Hour

// tokenClock: a winner's clock is a year ahead, then its record is released,
// expires or is deleted: a process that saw the token goes above it. Absurd
// clocks are ignored with a warning.
func tokenClock(t *testing.T) {
	for _, end := range []string{"released", "expired", "deleted"} {
		everyKind(t, func(w *world) {
			a, b := w.node(nil), w.node(nil)
			a.machine.step(year)
			first := a.lead()
			w.assert(first.Token() > elector.Token(wall(b)/time.Microsecond), "the winner's token shows that its clock is ahead")
			bid := b.campaign()
			w.pass(4 * time.Second)
			switch end {
			case "released":
				if err := first.Release(w.Context()); err != nil {
					t.Fatal(err)
				}
			case "deleted":
				w.check.spoil(nil)
			}
			a.machine.pause(time.Hour)
			second := bid.won(w, time.Minute)
			w.assert(second.Token() > first.Token(), "the token after the record was %s is higher: %d after %d", end, second.Token(), first.Token())
		})
	}
	for _, date := range []int{1970, 2300} {
		simulate(t, *seedFlag, polled, func(w *world) {
			n := w.node(nil)
			n.machine.step(time.Duration(date-2026) * year)
			l := n.lead()
			w.assert(l.Token() < elector.Token(time.Hour/time.Microsecond), "the year %d makes no token: %d", date, l.Token())
			n.mutex.Lock()
			defer n.mutex.Unlock()
			w.assert(strings.Contains(strings.Join(n.warned, "\n"), "time of day"), "the year %d is warned of: %q", date, n.warned)
		})
	}
}

// wall is the time of day on a node's machine.
func wall(n *node) time.Duration { return n.machine.Now().Wall }
