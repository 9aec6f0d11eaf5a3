package overlap

import "time"

// A run is a stretch of samples in a row in which a candidate said that it
// leads. The times are on the machine's boot-time clock: when the first and the
// last of these samples were asked for and answered.
type run struct {
	FirstAsked, FirstAnswered time.Duration
	LastAsked, LastAnswered   time.Duration
}

// An interval is a stretch of time, both ends included.
type interval struct{ from, to time.Duration }

// surely is what the run shows at least: the answer was yes from after the first
// sample until the last was asked for.
func (r run) surely() interval { return interval{r.FirstAnswered, r.LastAsked} }

// perhaps is what the run shows at most without guessing at what was not asked:
// each sample was answered at some time between question and answer.
func (r run) perhaps() interval { return interval{r.FirstAsked, r.LastAnswered} }

func intervals(runs []run, of func(run) interval) (all []interval) {
	for _, r := range runs {
		if i := of(r); i.from <= i.to {
			all = append(all, i)
		}
	}
	return all
}

// overlap is how long both believed, and whether they did at all: two intervals
// that share an instant have met. The intervals of one candidate do not overlap.
func overlap(a, b []interval) (both time.Duration, met bool) {
	for _, x := range a {
		for _, y := range b {
			from, to := max(x.from, y.from), min(x.to, y.to)
			if from <= to {
				both, met = both+to-from, true
			}
		}
	}
	return both, met
}

// last is when the last of the intervals ends, 0 if there is none.
func last(all []interval) (end time.Duration) {
	for _, i := range all {
		end = max(end, i.to)
	}
	return end
}
