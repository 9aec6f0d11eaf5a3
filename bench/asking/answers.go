package asking

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
)

// whileItAnswers measures each subject while the store answers. It also returns
// how long an empty call takes when it is timed by itself.
func whileItAnswers(subjects []subject, kind string, o Options) (figures []results.Figure, empty float64) {
	rounds, calls := 51, 20_000
	if o.Short {
		rounds, calls = 11, 5_000
	}
	// The machine's own measure, and a call that does nothing behind the same
	// interface as the others.
	asks := []func() bool{
		func() bool { return !time.Now().IsZero() }, // so that it is not optimised away
		peers.Candidate(&nobody{}).Leads,
	}
	const nows, drivers, first = 0, 1, 2
	for _, s := range subjects {
		asks = append(asks, s.ask)
	}
	took := inTurn(asks, rounds, func(ask func() bool) float64 {
		start := time.Now()
		for range calls {
			ask()
		}
		return float64(time.Since(start)) / float64(calls)
	})
	driver := fmt.Sprintf("%.1f ns of it are the measurement's own: a call that does nothing takes them", median(took[drivers]))
	ours := slices.IndexFunc(subjects, func(s subject) bool { return s.ours })
	for i, s := range subjects {
		figure := func(what, unit, note string, values ...float64) {
			figures = append(figures, results.Figure{
				Subject: results.Check, Store: kind, Library: s.library, What: what, Unit: unit, Values: values, Note: note,
			})
		}
		figure(Call, "ns", driver, took[first+i]...)
		figure(CallInNows, "times", "", ratios(took[first+i], took[nows])...)
		if ours >= 0 && !s.ours {
			figure(CallInOurs, "times", "", ratios(took[first+i], took[first+ours])...)
		}
		figure(Allocations, "allocations", "", allocations(s.ask, 1000))
	}
	alone := make([]float64, 0, 1001)
	for range cap(alone) {
		start := time.Now()
		asks[drivers]()
		alone = append(alone, float64(time.Since(start)))
	}
	return figures, median(alone)
}

// nobody is what a driver adds to its library: a call through the interface,
// and a look at what Campaign has left.
type nobody struct {
	peers.Candidate
	left *context.Context
}

func (n *nobody) Leads() bool { return n.left != nil }

// inTurn times every call once in each round.
func inTurn(asks []func() bool, rounds int, time func(func() bool) float64) [][]float64 {
	took := make([][]float64, len(asks))
	for range rounds {
		for i, ask := range asks {
			took[i] = append(took[i], time(ask))
		}
	}
	return took
}

// ratios divides, round by round.
func ratios(of, by []float64) []float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = of[i] / by[i]
	}
	return all
}

// allocations counts those of one call. Others that allocate meanwhile can only
// add, and less than one for each call.
func allocations(ask func() bool, calls int) float64 {
	least := uint64(1 << 62)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			ask()
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.Mallocs-before.Mallocs)/uint64(calls))
	}
	return float64(least)
}

func median(values []float64) float64 { return results.Figure{Values: values}.Median() }
