package demo

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/examples/internal/stage"

	"github.com/elector-go/elector"
)

// pair is a history of playPair in which everything was as promised, with
// requests of the waiter at the times given, in milliseconds.
func pair(requests ...time.Duration) []Event {
	events := []Event{
		{Process: "A", Kind: started, Boot: 100 * ms},
		{Process: "A", Kind: opened, Boot: 130 * ms},
		{Process: "A", Kind: leads, Boot: 140 * ms, Token: 100, Valid: true, Left: 1800 * ms},
		{Process: "A", Kind: renewed, Boot: 900 * ms, Token: 100, Valid: true, Left: 1800 * ms}, // no candidate waits yet
		{Process: "B", Kind: started, Boot: 901 * ms},
		{Process: "B", Kind: opened, Boot: 950 * ms},
		{Process: "B", Kind: waits, Boot: 990 * ms, Token: 100},
	}
	for i := range time.Duration(settling + counting + 1) { // until 9300
		events = append(events, Event{Process: "A", Kind: renewed, Boot: (1500 + 600*i) * ms, Token: 100, Valid: true, Left: 1800 * ms})
	}
	for _, at := range requests {
		events = append(events, Event{Process: "B", Kind: asked, Boot: at * ms})
	}
	return append(events,
		Event{Process: "A", Kind: asked, Boot: 4000 * ms}, // not the waiter's
		Event{Process: "A", Kind: terminated, Boot: 9500 * ms},
		Event{Process: "A", Kind: ended, Boot: 9510 * ms, Token: 100},
		Event{Process: "B", Kind: leads, Boot: 9550 * ms, Token: 200, Valid: true, Left: 1790 * ms},
		Event{Process: "C", Kind: waits, Boot: 9600 * ms, Token: 200},
		Event{Process: "B", Kind: renewed, Boot: 10200 * ms, Token: 200, Valid: true, Left: 1790 * ms},
		Event{Process: "B", Kind: killed, Boot: 10300 * ms},
		Event{Process: "C", Kind: leads, Boot: 12500 * ms, Token: 300, Valid: true, Left: 1790 * ms},
		Event{Process: "C", Kind: terminated, Boot: 13000 * ms},
		Event{Process: "C", Kind: ended, Boot: 13010 * ms, Token: 300},
	)
}

func figuresOf(r rules, events []Event) *Figures {
	events = stage.InOrder(events)
	return judge(r, &stage.Pulse{}, events, []string{"invoice 1 sent by 11 token 100"}).figures(events)
}

func TestFigures(t *testing.T) {
	// Counted from after 3300 until 9300: not the first, and not the last two.
	f := figuresOf(usual, pair(1000, 3300, 3301, 5000, 9300, 9301, 10000))
	want := Figures{
		TTL: 2 * time.Second, Connect: 30 * ms, Acquire: 10 * ms, Handover: 50 * ms, Takeover: 2200 * ms,
		HandoverLimit: time.Second, TakeoverLimit: 3350 * ms, Requests: 3, Idle: 6 * time.Second,
		Tokens: []elector.Token{100, 200, 300},
	}
	if len(f.Problems) > 0 {
		t.Errorf("problems: %q", f.Problems)
	}
	if f.Problems = nil; !reflect.DeepEqual(*f, want) {
		t.Errorf("figures %+v; want %+v", *f, want)
	}
	if f.PerMinute() != 30 {
		t.Errorf("%v requests in a minute; want 30", f.PerMinute())
	}
	if (&Figures{}).PerMinute() != 0 {
		t.Error("without a count there is a rate")
	}
}

// Lateness is no problem.
func TestFiguresReportLateness(t *testing.T) {
	events := pair()
	for i, e := range events {
		if e.Boot >= 9550*ms {
			events[i].Boot += 960 * ms // 1010 after SIGTERM
		}
		if e.Boot >= 12500*ms {
			events[i].Boot += 1150 * ms // as late as it may be
		}
	}
	f := figuresOf(usual, events)
	want := []string{"handover after SIGTERM took 1.01 s: 0.01 s late; meanwhile the machine stood still for 0.00 s, 0.00 s at a time"}
	if len(f.Problems) > 0 || !slices.Equal(f.Late, want) {
		t.Errorf("problems %q, late %q; want %q", f.Problems, f.Late, want)
	}
}

func TestFiguresFindEachFault(t *testing.T) {
	moved := func(process, kind string, by time.Duration) func([]Event) []Event {
		return func(events []Event) []Event {
			for i := range events {
				if events[i].Process == process && events[i].Kind == kind {
					events[i].Boot += by
				}
			}
			return events
		}
	}
	without := func(process, kind string) func([]Event) []Event {
		return func(events []Event) []Event {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Process == process && e.Kind == kind })
		}
	}
	for _, fault := range []struct {
		name  string
		wrong func([]Event) []Event
		want  string
	}{
		{"takeover early", moved("C", leads, -1*time.Second), "the leases of B (token 200) and C (token 300) were both valid"},
		{"none takes over", without("C", leads), "no process led after B was killed"},
		{"none was killed", without("B", killed), "no leader was killed"},
		{"none handed over", without("A", terminated), "no process led after C was terminated"},
		{"none waited", without("B", waits), "has renewed 0 times"},
		{"one renewal too few", func(events []Event) []Event {
			i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == renewed && e.Boot == 3300*ms })
			return slices.Delete(events, i, i+1)
		}, "has renewed 13 times in front of a waiter, 14 are needed"},
		{"none led", func(events []Event) []Event {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Kind == leads })
		}, "the first process has not become leader"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			f := figuresOf(usual, fault.wrong(pair()))
			if !slices.ContainsFunc(f.Problems, func(p string) bool { return strings.Contains(p, fault.want) }) {
				t.Errorf("problems %q; want one with %q", f.Problems, fault.want)
			}
		})
	}
}

func TestJudgeRecord(t *testing.T) {
	for name, c := range map[string]struct {
		record backends.Record
		want   string
	}{
		"as promised":  {backends.Record{Token: 300}, ""},
		"none":         {backends.Record{}, "has token 0, and not 300"},
		"another":      {backends.Record{Token: 200}, "has token 200, and not 300"},
		"not released": {backends.Record{Token: 300, Holder: "C"}, "still names C"},
	} {
		v := &verdict{rules: usual}
		v.judgeRecord(stage.InOrder(pair()), c.record)
		if got := strings.Join(v.problems, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: problems %q; want %q", name, got, c.want)
		}
	}
}

// What may be is worked out from the store's own limits: by hand, for the
// stores that differ.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name               string
		store              backends.Description
		pushes             bool
		ttl                time.Duration
		takeover, handover time.Duration
	}{
		{"pushes", backends.Description{}, true, 2 * time.Second, (2200 + 600 + 300 + 250) * ms, 1000 * ms},
		{"polled", backends.Description{}, false, 2 * time.Second, (2200 + 600 + 300 + 250) * ms, 1600 * ms},
		{"long TTL", backends.Description{MinTTL: 5 * time.Second, MinWriteInterval: 1200 * ms}, false, 5 * time.Second, (5500 + 1500 + 750 + 250) * ms, 3700 * ms},
		{"few writes", backends.Description{MinWriteInterval: time.Second}, false, 2 * time.Second, (2200 + 1000 + 500 + 250) * ms, 3000 * ms},
	} {
		r := rulesOf(c.store, c.pushes)
		if r.ttl != c.ttl || r.takeover != c.takeover || r.handover != c.handover {
			t.Errorf("%s: TTL %v, takeover within %v, handover within %v; want %v, %v, %v", c.name, r.ttl, r.takeover, r.handover, c.ttl, c.takeover, c.handover)
		}
	}
}
