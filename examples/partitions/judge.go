package main

import (
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/partition"
)

// A verdict is what the judge makes of what happened. It knows only what the
// processes reported and what is in the ledger.
type verdict struct {
	leases   int
	overlaps int
	items    int
	counted  int // once
	lost     int
	twice    int
	tried    int // stale requests
	refused  int
	problems []string // what is wrong; empty if everything was as promised
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge compares what happened, in order, with what is promised whatever the story.
func judge(events []stage.Event, items [][]string, counted [][]entry) *verdict {
	v := &verdict{}
	v.judgeLeases(events)
	for p := range items {
		v.judgeItems(p, items[p], counted[p])
	}
	for _, e := range events {
		if e.Kind == refused {
			v.tried++
			v.refused++
		}
	}
	return v
}

// leases returns the leases that the processes have reported. A lease counts from
// when its worker looked at it first.
func leases(events []stage.Event) []stage.Span {
	return stage.Spans(events, func(e stage.Event) time.Duration { return e.Boot })
}

// judgeLeases checks that no two leases on a partition were valid at the same time,
// and that tokens grow from owner to owner.
func (v *verdict) judgeLeases(events []stage.Event) {
	all := leases(events)
	v.leases = len(all)
	for _, o := range stage.Overlaps(all) {
		v.overlaps++
		v.problem("partition %d: the leases of %s (token %v) and %s (token %v) were both valid for %v", o.A.Partition, o.A.Process, o.A.Token, o.B.Process, o.B.Token, o.Both)
	}
	latest := map[int]stage.Event{}
	for _, e := range events {
		if e.Kind != owns {
			continue
		}
		before := latest[e.Partition]
		if e.Token < before.Token || e.Token == before.Token && e.Process != before.Process {
			v.problem("partition %d: %s owns it with token %v after %s with token %v", e.Partition, e.Process, e.Token, before.Process, before.Token)
		}
		latest[e.Partition] = e
	}
}

// judgeItems checks that each item of a partition was counted once, in order, and
// under tokens that never went back.
func (v *verdict) judgeItems(p int, items []string, counted []entry) {
	times, highest, ordered := map[string]int{}, elector.Token(0), true
	for i, e := range counted {
		times[e.text]++
		if ordered && i < len(items) && e.text != itemText(i, items[i]) { // one explains the next
			ordered = false
			v.problem("partition %d: line %d of the ledger is item %q and should be %q", p, i, e.text, itemText(i, items[i]))
		}
		if e.token < highest {
			v.tried++
			v.problem("partition %d: item %q was counted with token %v after token %v", p, e.text, e.token, highest)
		}
		highest = max(highest, e.token)
	}
	v.items += len(items)
	for i, key := range items {
		text := itemText(i, key)
		if of := partition.Of(key, partitions); of != p {
			v.problem("partition %d: item %q belongs to partition %d", p, text, of)
		}
		switch n := times[text]; n {
		case 0:
			v.lost++
			v.problem("partition %d: item %q is lost", p, text)
		case 1:
			v.counted++
		default:
			v.twice++
			v.problem("partition %d: item %q was counted %d times", p, text, n)
		}
		delete(times, text)
	}
	for text, n := range times {
		v.problem("partition %d: item %q was counted %d times and never came", p, text, n)
	}
}

// judgeStory checks that what was set out to show has happened: as many requests
// waited in C when it was stopped, and all of them came too late.
func (v *verdict) judgeStory(events []stage.Event, waited int) {
	late, wake := 0, time.Duration(0)
	for _, e := range stage.InOrder(events) {
		switch {
		case e.Kind == stage.Continued:
			wake = e.Boot
		case e.Kind == refused && wake > 0 && e.Valid:
			v.problem("partition %d: %s still believed in its lease when its late request was refused", e.Partition, e.Process)
		case e.Kind == refused && wake > 0:
			late++
		}
	}
	if waited == 0 || late < waited {
		v.problem("%d requests waited in the process that was stopped, and %d late ones were refused", waited, late)
	}
}

// A summary is what a step took.
type summary struct {
	moved    int
	took     time.Duration // until the last partition was owned
	without  time.Duration // the longest time for which a partition was without an owner
	overlaps int           // since the demo began
}

// sum sums up a step, after which the strip is as given.
func sum(history []stage.Event, s step, strip string) summary {
	events := stage.InOrder(history)
	r := summary{overlaps: len(stage.Overlaps(leases(events)))}
	for i := range strip {
		if s.before[i] != strip[i] {
			r.moved++
		}
	}
	working := map[int]map[string]bool{} // members, by partition
	free := map[int]time.Duration{}      // since when
	leave := func(p int, e stage.Event) {
		if working[p][e.Process] {
			delete(working[p], e.Process)
			free[p] = e.Boot
		}
	}
	for _, e := range events {
		switch e.Kind {
		case owns:
			if working[e.Partition] == nil {
				working[e.Partition] = map[string]bool{}
			}
			if len(working[e.Partition]) == 0 && e.Boot > s.begun {
				r.without = max(r.without, e.Boot-max(free[e.Partition], s.begun))
			}
			working[e.Partition][e.Process] = true
			r.took = max(r.took, e.Boot-s.begun)
		case gaveUp:
			leave(e.Partition, e)
		case stage.Killed, stage.Stopped:
			for p := range working {
				leave(p, e)
			}
		}
	}
	return r
}
