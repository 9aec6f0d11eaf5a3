package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

const ms = time.Millisecond

var usual = rulesOf(backends.Description{}, true)

// judged is the judgement of a history in any order, as Run has it made.
func judged(events []Event, journal []string) *verdict {
	events = inOrder(events)
	v := judge(usual, events, journal)
	v.judgeStory(events)
	return v
}

// asTold is a history in which everything happened as told. Times are in
// milliseconds, tokens 100, 200, ….
func asTold() ([]Event, []string) {
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
	v := judged(asTold())
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
		{"takeover late", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "A", killed).Boot -= time.Second + 300*ms
			return events, journal
		}, "takeover after kill -9 took 3.4s, more than 3.35s"},
		{"handover late", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "C", terminated).Boot -= time.Second
			return events, journal
		}, "handover after SIGTERM took 1.05s, more than 1s"},
		{"nobody refused", without("B", refused), "was not refused"},
		{"short stop", func(events []Event, journal []string) ([]Event, []string) {
			find(events, "B", stopped).Boot = 4600 * ms
			return events, journal
		}, "B was stopped for less than its TTL"},
		{"nobody killed", without("A", killed), "no leader was killed"},
		{"nobody stopped", without("B", stopped), "no leader was stopped"},
		{"nobody follows", func(events []Event, journal []string) ([]Event, []string) {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Token == 400 }), journal
		}, "nobody led after C was terminated"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			v := judged(fault.wrong(asTold()))
			if !slices.ContainsFunc(v.problems, func(p string) bool { return strings.Contains(p, fault.want) }) {
				t.Errorf("problems %q; want one with %q", v.problems, fault.want)
			}
		})
	}
}
