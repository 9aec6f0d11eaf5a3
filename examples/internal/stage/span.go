package stage

import (
	"time"

	"github.com/elector-go/elector"
)

// A Span is the time for which one process believed in one lease.
type Span struct {
	Process     string
	Partition   int
	Token       elector.Token
	From, Until time.Duration
}

// Spans finds the lease behind each token, in events that are in order. Whenever
// a process reports that its lease is valid, with so much left, it is valid until
// then unless the process gives it up. begin returns when the lease began that
// was first seen in an event.
func Spans(events []Event, begin func(Event) time.Duration) []Span {
	type key struct {
		process   string
		partition int
		token     elector.Token
	}
	var all []Span
	found := map[key]int{}
	for _, e := range events {
		k := key{e.Process, e.Partition, e.Token}
		i, known := found[k]
		switch {
		case e.Token == 0:
		case e.Valid && !known:
			found[k] = len(all)
			all = append(all, Span{e.Process, e.Partition, e.Token, begin(e), e.Boot + e.Left})
		case e.Valid:
			all[i].Until = max(all[i].Until, e.Boot+e.Left)
		case e.Kind == Ended && known:
			all[i].Until = min(all[i].Until, e.Boot)
		}
	}
	return all
}

// An Overlap is a time in which two leases on one partition were valid.
type Overlap struct {
	A, B Span
	Both time.Duration
}

// Overlaps compares each span with the others of its partition.
func Overlaps(spans []Span) (all []Overlap) {
	of := map[int][]Span{}
	for _, s := range spans {
		for _, before := range of[s.Partition] {
			if both := min(before.Until, s.Until) - max(before.From, s.From); both > 0 {
				all = append(all, Overlap{before, s, both})
			}
		}
		of[s.Partition] = append(of[s.Partition], s)
	}
	return all
}
