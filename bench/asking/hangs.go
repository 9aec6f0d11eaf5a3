package asking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
)

// often is how often one asks while the store hangs.
const often = time.Millisecond

// whileItHangs watches the subjects, whose network has just been cut, for
// two TTLs.
func whileItHangs(ctx context.Context, subjects []subject, kind string, o Options, alone float64) (figures []results.Figure, err error) {
	start := time.Now()
	since := func() time.Duration { return time.Since(start) }
	watches := make([]*watch, len(subjects))
	// How long the machine keeps a goroutine waiting that asks no library.
	empty := &watch{ask: peers.Candidate(&nobody{}).Leads, now: since, sleep: time.Sleep, underWay: func() bool { return false }}
	var watching sync.WaitGroup
	for i, s := range subjects {
		w := &watch{ask: s.ask, now: since, sleep: time.Sleep, underWay: func() bool { return s.way.Count().Requests > 0 }}
		watches[i] = w
		watching.Go(func() { w.run(2 * o.TTL) })
	}
	watching.Go(func() { empty.run(2 * o.TTL) })
	select {
	case <-time.After(2 * o.TTL):
	case <-ctx.Done():
	}
	// A call that still blocks comes back now.
	for _, s := range subjects {
		if err := s.way.Heal(); err != nil {
			return nil, err
		}
	}
	done := func() error { watching.Wait(); return nil }
	if err := within(opening, done); err != nil {
		return nil, fmt.Errorf("%s: a question was not answered although the store can be reached again: %w", kind, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, s := range subjects {
		w := watches[i]
		if s.way.Count().Requests == 0 {
			return nil, fmt.Errorf("%s on %s: %w", s.library, kind, errNothingUnderWay)
		}
		figures = append(figures, w.figures(s.library, kind, 2*o.TTL, alone, empty.longest)...)
	}
	return figures, nil
}

var errNothingUnderWay = errors.New("it sent nothing while the store hung: no renewal was under way")

// A watch asks again and again while the store hangs.
type watch struct {
	ask      func() bool
	now      func() time.Duration // since the store hangs
	sleep    func(time.Duration)
	underWay func() bool // whether a renewal is

	longest     time.Duration // of all calls
	single      []float64     // ns, of each call that said yes when a renewal was under way
	allocations []float64     // of one call, counted once when the first renewal was under way
	yes         bool          // the last answer
	lastYes     time.Duration // when it was given
}

func (w *watch) run(until time.Duration) {
	w.single = make([]float64, 0, until/often+1)
	for {
		asked := w.now()
		if asked >= until {
			return
		}
		before := w.underWay() // a call that waits for the renewal may last as long
		w.yes = w.ask()
		answered := w.now()
		w.longest = max(w.longest, answered-asked)
		if w.yes {
			w.lastYes = answered
		}
		if w.yes && w.underWay() {
			w.single = append(w.single, float64(answered-asked))
			if before && w.allocations == nil {
				w.allocations = []float64{allocations(w.ask, 100)}
			}
		}
		w.sleep(often)
	}
}

// figures are those of a watch. alone is how many nanoseconds an empty call
// takes that is timed by itself, and empty the longest that one took meanwhile.
func (w *watch) figures(library, kind string, length time.Duration, alone float64, empty time.Duration) []results.Figure {
	end := fmt.Sprintf("it said yes until %.1f s after the store began to hang", w.lastYes.Seconds())
	if w.yes {
		end = "it still said yes at the end"
	}
	f := func(what, unit, note string, values []float64) results.Figure {
		if len(values) == 0 {
			note = "no question that was asked while a renewal was under way was answered with yes; " + end
		}
		return results.Figure{Subject: results.Check, Store: kind, Library: library, What: what, Unit: unit, Values: values, Note: note}
	}
	return []results.Figure{
		f(HungCall, "ns", fmt.Sprintf("%.0f ns of it are the clock's and the measurement's own: an empty call that is timed by itself takes them", alone), thin(w.single, 51)),
		f(HungAllocations, "allocations", "", w.allocations),
		f(HungLongest, "ms", fmt.Sprintf("in whole milliseconds, asked every one of them for %g s, in which the longest empty call took %d; %s", length.Seconds(), empty.Milliseconds(), end), []float64{float64(w.longest.Milliseconds())}),
	}
}

// thin returns at most so many values: the medians of equal stretches.
func thin(values []float64, most int) []float64 {
	if len(values) <= most {
		return values
	}
	thinned := make([]float64, most)
	for i := range thinned {
		thinned[i] = median(values[i*len(values)/most : (i+1)*len(values)/most])
	}
	return thinned
}
