package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/examples/internal/stage"
)

// A verdict is what the judge makes of a history.
type verdict struct {
	rules     rules
	pulse     *stage.Pulse
	elections int
	overlaps  int
	tried     int // stale writes
	refused   int
	invoices  int
	growing   bool // tokens, from leader to leader and from writer to writer
	steps     []step
	problems  []string // what is wrong; empty if everything was as promised
}

// A step is a change of leader that the demo forced.
type step struct {
	what        string
	took, limit time.Duration
	still       stage.Standstill // of the machine, meanwhile
}

// late returns how late the step was, and for how long the machine stood still
// meanwhile; empty if it was in time. Lateness is no problem.
func (s step) late() string {
	if s.took <= s.limit {
		return ""
	}
	return fmt.Sprintf("%.2f s late; meanwhile the machine stood still for %.2f s, %.2f s at a time",
		(s.took - s.limit).Seconds(), s.still.Total.Seconds(), s.still.Longest.Seconds())
}

// judge compares what happened, in order, with what is promised whatever the
// story. It knows only what the processes reported and what is in the journal.
func judge(r rules, p *stage.Pulse, events []Event, journal []string) *verdict {
	v := &verdict{rules: r, pulse: p, growing: true}
	v.judgeLeases(events)
	v.judgeJournal(events, journal)
	return v
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// begun returns when the lease began that an event is the first to show. It counts
// from a full hold time before its end: when the request that won or renewed it
// was sent, which is before Check first succeeds. Of the time in which the process
// looked, which is long if it was paused there, a span takes what is sure.
func (r rules) begun(e Event) time.Duration {
	looked := e.Boot + e.Within
	return min(looked, looked+e.Left-r.hold)
}

// judgeLeases checks that no two leases were valid at the same time.
func (v *verdict) judgeLeases(events []Event) {
	for _, o := range stage.Overlaps(stage.Spans(events, v.rules.begun)) {
		v.overlaps++
		v.problem("the leases of %s (token %v) and %s (token %v) were both valid for %v", o.A.Process, o.A.Token, o.B.Process, o.B.Token, o.Both)
	}
	highest := elector.Token(0)
	for _, e := range events {
		if e.Kind != leads {
			continue
		}
		v.elections++
		if e.Token <= highest {
			v.growing = false
			v.problem("%s leads with token %v after token %v", e.Process, e.Token, highest)
		}
		highest = max(highest, e.Token)
	}
}

// judgeJournal checks that each invoice was sent once, in order, that tokens
// grow from writer to writer, and that stale writes were refused.
func (v *verdict) judgeJournal(events []Event, journal []string) {
	for _, e := range events {
		if e.Kind == refused {
			v.tried++
			v.refused++
		}
	}
	highest, writer := elector.Token(0), 0
	for i, line := range journal {
		var number, pid int
		var token uint64
		if _, err := fmt.Sscanf(line, "invoice %d sent by %d token %d", &number, &pid, &token); err != nil {
			v.problem("the journal has the line %q", line)
			continue
		}
		v.invoices++
		if number != i+1 {
			v.problem("line %d of the journal is invoice %d", i+1, number)
		}
		switch t := elector.Token(token); {
		case t < highest:
			v.tried++
			v.growing = false
			v.problem("invoice %d was taken with token %v after token %v", number, t, highest)
		case t == highest && pid != writer:
			v.growing = false
			v.problem("invoice %d: processes %d and %d write with the same token %v", number, writer, pid, t)
		default:
			highest, writer = t, pid
		}
	}
	if v.invoices == 0 {
		v.problem("the journal is empty")
	}
}

// judgeStory checks that each thing that Run set out to show happened.
func (v *verdict) judgeStory(events []Event) {
	v.succession(events, killed, "takeover after kill -9", v.rules.takeover)
	pause, _ := v.succession(events, stopped, "takeover after SIGSTOP", v.rules.takeover)
	wake, _ := first(events, func(e Event) bool { return e.Kind == continued && e.Process == pause.Process })
	if wake.Boot-pause.Boot < v.rules.ttl {
		v.problem("%s was stopped for less than its TTL", pause.Process)
	}
	late, ok := first(events, func(e Event) bool { return e.Kind == refused && e.Process == pause.Process && e.Boot > wake.Boot })
	if !ok {
		v.problem("the late write of the leader that was stopped was not refused")
	} else if late.Valid {
		v.problem("%s still believed in its lease when its late write was refused", late.Process)
	}
	v.succession(events, terminated, "handover after SIGTERM", v.rules.handover)
}

// succession finds the process that led after the demo did something to a
// leader, and how long that took.
func (v *verdict) succession(events []Event, act, what string, limit time.Duration) (done Event, ok bool) {
	at := slices.IndexFunc(events, func(e Event) bool { return e.Kind == act })
	if at < 0 {
		v.problem("no leader was %s", act)
		return done, false
	}
	done = events[at]
	// If it lost its lease just before, its successor may have led before too.
	won := at
	for i, e := range events[:at] {
		if e.Kind == leads && e.Process == done.Process {
			won = i
		}
	}
	next, ok := first(events[won:], func(e Event) bool { return e.Kind == leads && e.Process != done.Process })
	if !ok {
		v.problem("no process led after %s was %s", done.Process, act)
		return done, false
	}
	v.steps = append(v.steps, step{what, max(0, next.Boot-done.Boot), limit, v.pulse.Between(done.Boot, next.Boot)})
	return done, true
}

func first(events []Event, is func(Event) bool) (Event, bool) {
	if i := slices.IndexFunc(events, is); i >= 0 {
		return events[i], true
	}
	return Event{}, false
}
