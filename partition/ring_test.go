package partition

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

var table = flag.Bool("table", false, "let each share of 60 and of 1,000 members die, not only some")

// A polled is a link that pushes nothing.
type polled struct{ link *link }

func (p polled) Load(ctx context.Context, name string) (backends.Record, error) {
	return p.link.Load(ctx, name)
}
func (p polled) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return p.link.LoadMany(ctx, names)
}
func (p polled) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return p.link.Swap(ctx, name, prev, next)
}
func (p polled) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return p.link.SwapMany(ctx, changes)
}
func (p polled) Describe() backends.Description { return p.link.Describe() }
func (p polled) Close() error                   { return nil }

// A one is a link that takes one name in a request, and pushes nothing.
type one struct{ link *link }

func (o one) Load(ctx context.Context, name string) (backends.Record, error) {
	return o.link.Load(ctx, name)
}
func (o one) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return o.link.Swap(ctx, name, prev, next)
}
func (o one) Describe() backends.Description { return backends.Description{Store: "one://"} }
func (o one) Close() error                   { return nil }

// joinBy starts a process on a store of a kind.
func (f *fleet) joinBy(kind, id string) *process {
	return f.joinOn(id, nil, func(l *link) backends.Backend {
		switch kind {
		case "polled":
			return polled{l}
		case "singly":
			return one{l}
		}
		return l
	})
}

func requests(all []*process) (n int) {
	for _, p := range all {
		p.link.mutex.Lock()
		n += p.link.asked
		p.link.mutex.Unlock()
	}
	return n
}

// A disaster is a group of which some members die at once.
type disaster struct {
	kind    string // of the store
	members int
	which   string // first, last or random
	dead    int
	settle  time.Duration // 0 for the default
}

func (d disaster) String() string {
	s := fmt.Sprintf("%s/%d/%s/%d", d.kind, d.members, d.which, d.dead)
	if d.settle > 0 {
		s += fmt.Sprintf("/settle %v", d.settle)
	}
	return s
}

// victims returns the numbers of the members that die.
func (d disaster) victims() (all []int) {
	switch d.which {
	case "first":
		return rand.Perm(d.dead)
	case "last":
		for _, i := range rand.Perm(d.dead) {
			all = append(all, d.members-1-i)
		}
		return all
	}
	return rand.Perm(d.members)[:d.dead]
}

// disasters returns some, or those of a table.
func disasters() (all []disaster) {
	if !*table {
		return []disaster{{"polled", 60, "first", 30, 0}, {"polled", 60, "first", 3, 20 * time.Second}, {"polled", 60, "last", 1, 0}, {"pushed", 60, "first", 30, 0}, {"pushed", 60, "random", 59, 0}, {"singly", 60, "first", 15, 0}, {"singly", 60, "last", 30, 0}, {"pushed", 200, "first", 150, 0}}
	}
	for _, kind := range []string{"polled", "pushed", "singly"} {
		for _, which := range []string{"first", "last", "random"} {
			for _, k := range []int{1, 3, 6, 9, 15, 20, 30, 59} {
				all = append(all, disaster{kind, 60, which, k, 0})
			}
			for _, k := range []int{1, 500, 999} {
				all = append(all, disaster{kind, 1000, which, k, 0})
			}
		}
	}
	return all
}

// Whichever members die at once, every partition has an owner again within 3 C and the moves,
// or 3.5 C and the moves where the store reads one name at a time.
func TestAnyMayDie(t *testing.T) {
	for _, d := range disasters() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			withFleet(t, 2*d.members, func(f *fleet) {
				f.quiet, f.settle = true, d.settle
				var all []*process
				var ids []string
				for i := range d.members {
					all = append(all, f.joinBy(d.kind, fmt.Sprintf("m%03d", i)))
					ids = append(ids, all[i].ID())
					time.Sleep(20 * time.Millisecond)
				}
				f.settles(5*time.Minute, ids...)
				time.Sleep(time.Minute)
				before := requests(all)
				time.Sleep(time.Minute)
				rest := float64(requests(all)-before) / 60
				dies := d.victims()
				var stay []string
				for i, p := range all {
					if slices.Contains(dies, i) {
						p.link.set(true)
					} else {
						stay = append(stay, p.ID())
					}
				}
				before = requests(all)
				begun := time.Now()
				f.settles(30*time.Minute, stay...)
				took := time.Since(begun)
				asked := float64(requests(all)-before) - rest*took.Seconds()
				t.Logf("%v: all partitions are owned again after %.1f s; %.1f requests a second at rest, %.0f more until then", d, took.Seconds(), rest, asked)
				c := all[0].challenge()
				bound := 3 * c
				switch {
				case d.which == "last" && d.dead == 1: // the deputies live
					bound = 3 * c / 2
				case d.kind == "singly":
					bound = 7 * c / 2
				}
				if took > bound+time.Second { // for the moves
					t.Errorf("all partitions are owned again after %v, %.1f C", took, float64(took)/float64(c))
				}
				f.ends(all...)
			})
		})
	}
}
