package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/examples/internal/stage"
)

const ms = time.Millisecond

var usual = rulesOf(backends.Description{}, true)

// judged is the judgement of a history in any order, as Run has it made.
func judged(events []Event, journal []string) *verdict {
	events = stage.InOrder(events)
	v := judge(usual, &stage.Pulse{}, events, journal)
	v.judgeStory(events)
	return v
}

// asPromised is a history in which everything was as promised. Times are in
// milliseconds, tokens 100, 200, ….
func asPromised() ([]Event, []string) {
	lease := func(process, kind string, boot time.Duration, token elector.Token, left time.Duration) Event {
		return Event{Process: process, Kind: kind, Boot: boot * ms, Token: token, Valid: left > 0, Left: left * ms}
	}
	return []Event{
			lease("A", leads, 1000, 100, 1800),
			lease("B", waits, 1100, 100, 0),
			lease("A", renewed, 1600, 100, 1800), // until 3400
			{Process: "A", Kind: killed, Boot: 1700 * ms},
			lease("B", leads, 3800, 200, 1800),
			lease("B", about, 4000, 200, 1600), // until 5600
			{Process: "B", Kind: stopped, Boot: 4000 * ms},
			lease("C", leads, 6000, 300, 1800),
			{Process: "B", Kind: continued, Boot: 6500 * ms},
			lease("B", ended, 6501, 200, 0),
			lease("B", refused, 6502, 200, 0),
			{Process: "C", Kind: terminated, Boot: 6600 * ms},
			lease("C", ended, 6610, 300, 0), // it would have been until 7800
			lease("B", leads, 6650, 400, 1780),
			{Process: "D", Kind: terminated, Boot: 7000 * ms},
		}, []string{
			"invoice 1 sent by 11 token 100",
			"invoice 2 sent by 11 token 100",
			"invoice 3 sent by 12 token 200",
			"invoice 4 sent by 13 token 300",
			"invoice 5 sent by 12 token 400",
		}
}

func TestJudgeFindsNothingWrong(t *testing.T) {
	v := judged(asPromised())
	if len(v.problems) > 0 {
		t.Errorf("problems: %q", v.problems)
	}
	if v.elections != 4 || v.overlaps != 0 || v.tried != 1 || v.refused != 1 || v.invoices != 5 || !v.growing || len(v.steps) != 3 {
		t.Errorf("verdict: %+v", v)
	}
}

func TestJudgeFindsEachFault(t *testing.T) {
	find := func(events []Event, process, kind string) *Event {
		i := slices.IndexFunc(events, func(e Event) bool { return e.Process == process && e.Kind == kind })
		return &events[i]
	}
	without := func(process, kind string) func([]Event, []string) ([]Event, []string) {
		return func(events []Event, journal []string) ([]Event, []string) {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Process == process && e.Kind == kind }), journal
		}
	}
	for _, fault := range []struct {
		name  string
		wrong func([]Event, []string) ([]Event, []string)
		want  string
	}{
		{"overlap", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "B", leads).Boot = 3300 * ms // A's lease lasts until 3400
			return events, journal
		}, "the leases of A (token 100) and B (token 200) were both valid for 100ms"},
		{"leases that last too long", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "B", about).Left = 2100 * ms
			find(events, "C", leads).Left = 2 * usual.hold
			return events, journal
		}, "the leases of B (token 200) and C (token 300) were both valid for 100ms"},
		{"overlap after a pause", func(events []Event, journal []string) ([]Event, []string) {
			e := find(events, "B", refused) // a lease that comes back to life
			e.Valid, e.Left = true, 100*ms
			return events, journal
		}, "still believed"},
		{"overlap at a handover", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "C", ended).Boot = 6700 * ms
			return events, journal
		}, "were both valid for 70ms"},
		{"valid after it was resigned", func(events []Event, journal []string) ([]Event, []string) {
			return append(events, Event{Process: "C", Kind: wrote, Boot: 6700 * ms, Token: 300, Valid: true, Left: ms}), journal
		}, "both valid"},
		{"token goes back", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "C", leads).Token = 150
			return events, journal
		}, "C leads with token 150 after token 200"},
		{"stale write taken", func(events []Event, journal []string) ([]Event, []string) {
			return events, append(journal, "invoice 6 sent by 12 token 200")
		}, "invoice 6 was taken with token 200 after token 400"},
		{"token shared", func(events []Event, journal []string) ([]Event, []string) {
			return events, append(journal, "invoice 6 sent by 13 token 400")
		}, "processes 12 and 13 write with the same token"},
		{"invoice sent twice", func(events []Event, journal []string) ([]Event, []string) {
			return events, slices.Insert(journal, 3, journal[2])
		}, "line 4 of the journal is invoice 3"},
		{"unreadable journal", func(events []Event, journal []string) ([]Event, []string) {
			return events, append(journal, "inv")
		}, `has the line "inv"`},
		{"empty journal", func(events []Event, _ []string) ([]Event, []string) { return events, nil }, "is empty"},
		{"nothing refused", without("B", refused), "was not refused"},
		{"short stop", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "B", stopped).Boot = 4600 * ms
			return events, journal
		}, "B was stopped for less than its TTL"},
		{"none killed", without("A", killed), "no leader was killed"},
		{"none stopped", without("B", stopped), "no leader was stopped"},
		{"none follows", func(events []Event, journal []string) ([]Event, []string) {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Token == 400 }), journal
		}, "no process led after C was terminated"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			v := judged(fault.wrong(asPromised()))
			if !slices.ContainsFunc(v.problems, func(p string) bool { return strings.Contains(p, fault.want) }) {
				t.Errorf("problems %q; want one with %q", v.problems, fault.want)
			}
		})
	}
}

// Lateness is reported with the standstill of the machine, and is no problem.
func TestJudgeReportsLateness(t *testing.T) {
	events, journal := asPromised()
	for i, e := range events {
		switch {
		case e.Kind == killed:
			events[i].Boot -= 700 * ms // at 1000, the successor leads at 4400
		case e.Boot > 6610*ms:
			events[i].Boot += 1600 * ms // at 8250, 1050 after SIGTERM
		case e.Boot >= 3800*ms:
			events[i].Boot += 600 * ms
		}
	}
	p := &stage.Pulse{}
	// It stands still from 610 to 1200, from 1220 to 1500, from 1510 to 4400,
	// from 4410 to 7600, and from 7620 on.
	for _, at := range []time.Duration{600, 1200, 1210, 1500, 4400, 7600, 7610} {
		p.Tick(at * ms)
	}
	v := judge(usual, p, stage.InOrder(events), journal)
	v.judgeStory(stage.InOrder(events))
	if len(v.problems) > 0 {
		t.Errorf("problems: %q", v.problems)
	}
	var late []string
	for _, s := range v.steps {
		late = append(late, s.late())
	}
	want := []string{
		"0.05 s late; meanwhile the machine stood still for 3.37 s, 2.89 s at a time",
		"",
		"0.05 s late; meanwhile the machine stood still for 1.03 s, 0.63 s at a time",
	}
	if !slices.Equal(late, want) {
		t.Errorf("late: %q; want %q", late, want)
	}
}

// A leader that lost its lease just before the demo got to it has a successor
// all the same.
func TestJudgeSuccessionBefore(t *testing.T) {
	events := []Event{
		{Process: "A", Kind: leads, Boot: 1000 * ms, Token: 100},
		{Process: "B", Kind: leads, Boot: 3200 * ms, Token: 200},
		{Process: "A", Kind: stopped, Boot: 3300 * ms},
	}
	v := &verdict{rules: usual, pulse: &stage.Pulse{}}
	if _, ok := v.succession(events, stopped, "takeover", usual.takeover); !ok || len(v.problems) > 0 || v.steps[0].took != 0 {
		t.Errorf("found: %v, problems %q, steps %v", ok, v.problems, v.steps)
	}
}

// A process that is paused while it looks at its lease makes no overlap: only
// what is sure counts.
func TestPausedLook(t *testing.T) {
	events := []Event{
		{Process: "A", Kind: leads, Boot: 1000 * ms, Token: 100, Valid: true, Left: 1800 * ms, Within: 900 * ms}, // until 2800 for sure
		{Process: "B", Kind: leads, Boot: 2700 * ms, Token: 200, Valid: true, Left: 1700 * ms, Within: 500 * ms}, // from 3100 for sure
	}
	v := &verdict{rules: usual, growing: true}
	if v.judgeLeases(events); v.overlaps > 0 {
		t.Errorf("problems: %q", v.problems)
	}
	events[1].Within = 100 * ms // from 2700
	if v.judgeLeases(events); v.overlaps != 1 {
		t.Errorf("%d overlaps; want one", v.overlaps)
	}
}
