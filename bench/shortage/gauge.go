package shortage

import "time"

// A Row is what one part did.
type Row struct {
	Kind       string // of store
	Part       Part
	Elections  int
	Least      int           // elections led at a time, until all were led again and for some time after
	Kept       int           // led at the end of the row
	After      time.Duration // from the end of the shortage until all were led and stayed so; below 0 if they were not
	Led        []int         // every 5 s; below 0 where the process told nothing for so long
	Silent     time.Duration // for which the process told nothing, at most
	Ended      int           // leases
	Goroutines int           // the most
	Requests   Requests
	Logged     Logged
}

const (
	sample   = 5 * time.Second
	patience = time.Minute // for all to be led again
)

// A gauge makes a row of what a child tells.
type gauge struct {
	row    Row
	phase  int           // of the child
	settle time.Duration // for which all must stay led
	begun  time.Time
	last   time.Time // when the child told something
	lifted time.Time // when the shortage was over; zero while it is not
}

func newGauge(r Row, phase int, settle time.Duration, now time.Time) *gauge {
	r.Least, r.After = r.Elections, -1
	return &gauge{row: r, phase: phase, settle: settle, begun: now, last: now}
}

// take takes a sight, and reports whether the row is complete: whether all have been led for
// long enough.
func (g *gauge) take(s sight, now time.Time) bool {
	if s.Phase != g.phase {
		return false
	}
	r := &g.row
	r.Least, r.Kept, r.Goroutines = min(r.Least, s.Least, s.Led), s.Led, max(r.Goroutines, s.Goroutines)
	r.Ended, r.Requests, r.Logged = s.Ended, s.Requests, s.Logged
	r.Silent, g.last = max(r.Silent, now.Sub(g.last)), now
	for due := int(now.Sub(g.begun)/sample) + 1; len(r.Led) < due; {
		led := s.Led
		if len(r.Led) < due-1 {
			led = -1
		}
		r.Led = append(r.Led, led)
	}
	switch {
	case g.lifted.IsZero():
		return false
	case s.Led < r.Elections:
		r.After = -1
	case r.After < 0:
		r.After = now.Sub(g.lifted)
	}
	return r.After >= 0 && now.Sub(g.lifted) >= r.After+g.settle
}
