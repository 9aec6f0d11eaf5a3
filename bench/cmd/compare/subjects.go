package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/asking"
	"github.com/elector-go/elector/bench/cost"
	"github.com/elector-go/elector/bench/handover"
	"github.com/elector-go/elector/bench/overlap"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/report"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/bench/scale"
)

// options are what each measurement is told.
type options struct {
	ttl       time.Duration
	short     bool
	libraries []peers.Library
	elections []int  // of subject scale; empty for the numbers that it has
	profiles  string // a folder, empty for none
	log       func(format string, args ...any)
}

// A subject is a measurement, by its name on the command line.
type subject struct {
	name     string
	subjects []string // of its figures
	measure  func(context.Context, options) ([]results.Figure, error)
}

// undisturbed is the subject that a short run measures apart from the others: a
// case of this library that does not take place there fails it.
const undisturbed = "overlap"

// subjects are all measurements, in the order in which they run.
var subjects = []subject{
	{"cost", []string{results.Cost}, func(ctx context.Context, o options) ([]results.Figure, error) {
		return cost.Measure(ctx, cost.Options{TTL: o.ttl, Short: o.short, Libraries: o.libraries, Log: o.log})
	}},
	{"handover", []string{results.Handover, results.Takeover}, func(ctx context.Context, o options) ([]results.Figure, error) {
		return handover.Measure(ctx, handover.Options{TTL: o.ttl, Short: o.short, Libraries: o.libraries, Log: o.log})
	}},
	{"scale", []string{results.Scale}, func(ctx context.Context, o options) ([]results.Figure, error) {
		return scale.Measure(ctx, scale.Options{Short: o.short, Libraries: o.libraries, Elections: o.elections, Profiles: o.profiles, Log: o.log}) // with a TTL of its own
	}},
	{"asking", []string{results.Check}, func(ctx context.Context, o options) ([]results.Figure, error) {
		return asking.Measure(ctx, asking.Options{TTL: o.ttl, Short: o.short, Libraries: o.libraries, Log: o.log})
	}},
	{undisturbed, []string{results.Overlap}, func(ctx context.Context, o options) ([]results.Figure, error) {
		rounds := 3
		if o.short {
			rounds = 1
		}
		return overlap.Measure(ctx, o.libraries, o.ttl, rounds)
	}},
}

func subjectNames() (all []string) {
	for _, s := range subjects {
		all = append(all, s.name)
	}
	return all
}

// chooseSubjects returns those that were named, all if none was.
func chooseSubjects(all []subject, wanted []string) (chosen []subject, err error) {
	for _, w := range wanted {
		if !slices.ContainsFunc(all, func(s subject) bool { return s.name == w }) {
			return nil, fmt.Errorf("unknown subject %q; known are %s", w, strings.Join(subjectNames(), ", "))
		}
	}
	for _, s := range all {
		if len(wanted) == 0 || slices.Contains(wanted, s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// merge replaces what there was of the same subjects and libraries by what was
// measured now, drops those of libraries that are measured no more, and puts all in
// the order of subjects and libraries.
func merge(before, now []results.Figure, measured []string, libraries []peers.Library) []results.Figure {
	everyone := peers.All()
	kept := slices.DeleteFunc(slices.Clone(before), func(f results.Figure) bool {
		return slices.Contains(measured, f.Subject) && indexOf(libraries, f) < len(libraries) || indexOf(everyone, f) == len(everyone)
	})
	all := append(kept, now...)
	var order []string
	for _, s := range subjects {
		order = append(order, s.subjects...)
	}
	slices.SortStableFunc(all, func(a, b results.Figure) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Subject), slices.Index(order, b.Subject)),
			cmp.Compare(indexOf(everyone, a), indexOf(everyone, b)),
		)
	})
	return all
}

// indexOf returns where a figure's library is, or how many there are if it is
// not. What is behind the name in brackets is another way to ask it.
func indexOf(libraries []peers.Library, f results.Figure) int {
	name, _, _ := strings.Cut(f.Library, " (")
	for i, l := range libraries {
		if l.Store == f.Store && l.Name == name {
			return i
		}
	}
	return len(libraries)
}

// askStores starts each store once, to see that it can be had before anything
// is measured, and to know its version.
func askStores(ctx context.Context, kinds []string, log func(string, ...any)) ([]report.System, error) {
	systems := make([]report.System, len(kinds))
	errs := make([]error, len(kinds))
	var starting sync.WaitGroup
	for i, kind := range kinds {
		starting.Go(func() {
			s, stop, err := peers.Start(ctx, kind)
			if err != nil {
				errs[i] = err
				return
			}
			systems[i] = report.System{Kind: kind, Name: version(s.How), Settings: s.Settings}
			errs[i] = stop()
		})
	}
	starting.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kinds[i], err)
		}
		log("%s: %s", kinds[i], systems[i].Name)
	}
	return systems, nil
}

// version is what a store is, without where this machine has it from.
func version(how string) string {
	how, _, _ = strings.Cut(how, "; ") // there may follow why not otherwise
	how, _, _ = strings.Cut(how, " (")
	return strings.TrimPrefix(how, "local process ")
}
