package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A Back says how soon there were leaders again, in the elections of a store or in the
// partitions of its groups.
type Back struct {
	Store  string
	Groups bool
	of     []recovery
}

// A recovery is the longest of what has the same bound: from the end of a fault to a write of a
// leader.
type recovery struct {
	bound, longest time.Duration
	number         int
	never          int // the history ends before such a write
}

// Backs returns the figures of each store.
func Backs(h *history.History) (all []Back) {
	for _, e := range h.Elections {
		i := slices.IndexFunc(all, func(b Back) bool { return b.Store == e.Store && b.Groups == (e.Group != "") })
		if i < 0 {
			i, all = len(all), append(all, Back{Store: e.Store, Groups: e.Group != ""})
		}
		all[i].add(h.Of(e.Name))
	}
	all = slices.DeleteFunc(all, func(b Back) bool { return len(b.of) == 0 })
	slices.SortStableFunc(all, func(a, b Back) int { return cmp.Compare(a.Store, b.Store) })
	return all
}

func (b *Back) add(events []history.Event) {
	quiet := history.Event{}
	for _, e := range events {
		switch {
		case e.Kind == history.Quiet:
			quiet = e
		case e.Kind == history.Wrote && quiet.At > 0 && e.Before >= quiet.At:
			s := b.recovery(quiet.Left)
			s.number++
			s.longest = max(s.longest, e.At-quiet.At)
			quiet = history.Event{}
		}
	}
	if quiet.At > 0 {
		b.recovery(quiet.Left).never++
	}
}

// recovery returns that of a bound, which may be new.
func (b *Back) recovery(bound time.Duration) *recovery {
	i, ok := slices.BinarySearchFunc(b.of, bound, func(s recovery, bound time.Duration) int { return cmp.Compare(s.bound, bound) })
	if !ok {
		b.of = slices.Insert(b.of, i, recovery{bound: bound})
	}
	return &b.of[i]
}

// String returns the figures in a line.
func (b Back) String() string {
	what, who := "Elections", "a leader"
	if b.Groups {
		what, who = "Groups", "each owner"
	}
	var parts []string
	for _, s := range b.of {
		part := fmt.Sprintf("%s at most of %s allowed, %s", length(s.longest), length(s.bound), plural(s.number, "time", "times"))
		if s.never > 0 {
			part += fmt.Sprintf(", and %s not before the end", plural(s.never, "time", "times"))
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%s in %s: from the end of a fault to a write of %s %s.", what, b.Store, who, strings.Join(parts, "; "))
}
