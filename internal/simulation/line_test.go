package simulation

import (
	"context"
	"fmt"
	"strings"

	"github.com/elector-go/elector/backends"
)

// SwapPlace implements backends.Liner. What the network does to places it does to
// writes.
func (l watchLink) SwapPlace(ctx context.Context, name, prev, next string) error {
	n := l.whose(ctx, "")
	a := l.travel(ctx, l.take("place", n.in(name)), "place", func() answer {
		err := l.on(name).SwapPlace(context.Background(), name, prev, next)
		if name == election && err == nil && next != "" {
			l.w.taken.Add(1)
		}
		return answer{err: err}
	})
	return a.err
}

// lies replaces the place in line: by that of a candidate that may not wait, be dead
// or not exist, for this tenure or another one, or by nonsense.
func (x *wild) lies(d *dice) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	liar, place, token := x.w.store.Handle(), "", uint64(0)
	liar.WatchLine(ctx, election, func(r backends.Record) { token = r.Token; cancel() }, func(p string) { place = p })
	if d.chance(0.2) {
		token -= uint64(d.below(3))
	}
	lie := fmt.Sprintf("%d n%d", token, d.below(7))
	if d.chance(0.3) {
		lie = []string{"", "1", lie + " ", "n1 n1", "-1 n1", "%zz n1", strings.Repeat("x", 300), "0 n1"}[d.below(8)]
	}
	return lie != place && liar.SwapPlace(context.Background(), election, place, lie) == nil
}
