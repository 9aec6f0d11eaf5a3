package groups

import (
	"cmp"
	"slices"
	"time"
)

// A span is a stretch of time on the machine's boot-time clock.
type span struct{ from, to time.Duration }

// forever is the end of a stretch that has not ended.
const forever = time.Duration(1<<63 - 1)

// A stretch is the time in which a member works on a partition, unit after unit: from the
// start of the first one to the end of the last one.
type stretch struct {
	member    string
	partition int
	span
}

// An outcome is what a scene shows.
type outcome struct {
	longest, sum time.Duration   // for how long several members worked on a partition: the most of a partition, and of all
	idle         []time.Duration // of each partition that moved: for how long no member worked on it
	still        []time.Duration // the same of each that did not move, where that is not 0
	moves        int             // starts of work by another member than the one before
	open         bool            // no member worked on a partition at the end
}

// judge returns what the stretches show of a scene. While a member was frozen it did not
// work, whatever it said later. The stretches of one member on one partition do not overlap.
func judge(partitions int, all []stretch, frozen map[string][]span, scene span) (o outcome) {
	of, pieces := make([][]stretch, partitions), make([][]span, partitions)
	for _, s := range all {
		of[s.partition] = append(of[s.partition], s)
		pieces[s.partition] = append(pieces[s.partition], without(s.span, frozen[s.member])...)
	}
	for n := range partitions {
		both, none, open := shared(pieces[n], scene)
		o.longest, o.sum = max(o.longest, both), o.sum+both
		moves := moved(of[n], scene)
		o.moves += moves
		o.open = o.open || open
		if moves > 0 {
			o.idle = append(o.idle, none)
		} else if none > 0 {
			o.still = append(o.still, none)
		}
	}
	return o
}

// without returns what is left of a span.
func without(s span, gaps []span) (left []span) {
	for _, gap := range gaps { // in their order
		if gap.to <= s.from || gap.from >= s.to {
			continue
		}
		if s.from < gap.from {
			left = append(left, span{s.from, gap.from})
		}
		s.from = min(gap.to, s.to)
	}
	if s.from < s.to {
		left = append(left, s)
	}
	return left
}

// shared returns for how long of the scene several members worked on a partition, for how
// long none did, and whether none did at its end.
func shared(pieces []span, scene span) (both, none time.Duration, open bool) {
	var marks []time.Duration
	for _, p := range pieces {
		marks = append(marks, p.from, p.to)
	}
	marks = append(marks, scene.from, scene.to)
	slices.Sort(marks)
	for i, from := range marks[:len(marks)-1] {
		to := marks[i+1]
		if from < scene.from || to > scene.to || from == to {
			continue
		}
		working := 0
		for _, p := range pieces {
			if p.from <= from && p.to >= to {
				working++
			}
		}
		open = working == 0
		switch {
		case working > 1:
			both += to - from
		case working == 0:
			none += to - from
		}
	}
	return both, none, open
}

// moved returns how often another member than the one before began to work on a partition
// in the scene.
func moved(all []stretch, scene span) (moves int) {
	last := ""
	for _, s := range slices.SortedStableFunc(slices.Values(all), func(a, b stretch) int { return cmp.Compare(a.from, b.from) }) {
		if s.from >= scene.from && s.from < scene.to && last != "" && s.member != last {
			moves++
		}
		last = s.member
	}
	return moves
}

// median returns the median of the times, 0 of none.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// most returns the longest time for which no member worked on a partition.
func (o outcome) most() (longest time.Duration) {
	for _, d := range slices.Concat(o.idle, o.still) {
		longest = max(longest, d)
	}
	return longest
}
