package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// election is a history by hand with one of each: at 1 s A leads; at 5 s it is
// killed, and B leads at 7 s; at 10 s B is told to end, and C leads 100 ms after
// B resigned; the store is broken from 14 to 20 s, C loses its lease at 15.8 s,
// and leads again at 21 s; then D leads 500 ms too early, and C's write is taken.
func election() *script {
	s := newScript("etcd", "one")
	for _, c := range []string{"A", "B", "C", "D"} {
		s.tell(0, c, history.Started)
		s.tell(100, c, history.Opened)
	}
	s.tell(1000, "A", history.Acquired, token(1), valid(1800))
	s.tell(4800, "A", history.Renewed, token(1), valid(1800))
	s.tell(4900, "A", history.Accepted, token(1), write(1))
	s.tell(5000, "A", history.Killed)
	s.tell(5010, "A", history.Exited, detail("signal: killed"))
	s.tell(7000, "B", history.Acquired, token(2), valid(1800))
	s.tell(7100, "A", history.Rejected, token(1), write(2))
	s.tell(9900, "B", history.Renewed, token(2), valid(1800))
	s.tell(10000, "B", history.Terminated)
	s.tell(10040, "B", history.Canceled, token(2))
	s.tell(10050, "B", history.Ended, token(2), detail("resigned: it was asked to"))
	s.tell(10060, "B", history.Released, token(2))
	s.tell(10070, "B", history.Exited)
	s.tell(10150, "C", history.Acquired, token(3), valid(1800))
	s.tell(14000, "C", history.Renewed, token(3), valid(1800))
	s.tell(14000, "", history.Fault, detail("server stopped"))
	s.tell(15800, "C", history.Ended, token(3), detail("lost: too late"))
	s.tell(20000, "", history.Healed, detail("server stopped"))
	s.tell(21000, "C", history.Acquired, token(4), valid(1800))
	s.tell(29000, "C", history.Renewed, token(4), valid(1800))
	s.tell(30300, "D", history.Acquired, token(5), valid(1800))
	s.tell(30400, "D", history.Accepted, token(5), write(1))
	s.tell(30500, "C", history.Accepted, token(4), write(2))
	s.tell(30900, "D", history.Ended, token(5), detail("resigned: done"))
	return s
}

func TestSpans(t *testing.T) {
	got := stories(election().h, nil)[0].spans
	want := []span{
		{"A", 1, ms(1000), ms(6600), ""}, // its death does not end its lease
		{"B", 2, ms(7000), ms(10050), "resigned: it was asked to"},
		{"C", 3, ms(10150), ms(15800), "lost: too late"},
		{"C", 4, ms(21000), ms(30800), ""},
		{"D", 5, ms(30300), ms(30900), "resigned: done"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("spans\n%v, want\n%v", got, want)
	}
}

func TestSpansOfAWorkerThatDrains(t *testing.T) {
	s := newScript("etcd", "one")
	s.tell(0, "A", history.Acquired, token(1), valid(1800))
	s.tell(500, "A", history.Canceled, token(1))
	s.tell(700, "A", history.Checked, token(1), valid(1100))
	s.tell(900, "A", history.Checked, token(1)) // fails
	if got := spansOf(s.h.Events); len(got) != 1 || got[0].until != ms(700) {
		t.Errorf("spans %v, want one until the last look that succeeded after the cancellation, %v", got, ms(700))
	}
}

func TestGaps(t *testing.T) {
	s := stories(election().h, nil)[0]
	type short struct {
		how                    string
		length, counted, bound time.Duration
	}
	var got []short
	for _, g := range s.gaps {
		got = append(got, short{g.how, g.length(), g.counted, g.bound})
	}
	tau, handed := 3350*time.Millisecond, 1450*time.Millisecond
	want := []short{
		{first, time.Second, 900 * time.Millisecond, tau},
		{takeover, 2 * time.Second, 2 * time.Second, tau},
		{handover, 100 * time.Millisecond, 100 * time.Millisecond, handed},
		{takeover, 5200 * time.Millisecond, time.Second, tau}, // 4.2 s of it the store's
	}
	if !slices.Equal(got, want) {
		t.Errorf("gaps\n%v, want\n%v", got, want)
	}
	if len(s.overlaps) != 1 || s.overlaps[0].from != ms(30300) || s.overlaps[0].until != ms(30800) {
		t.Errorf("overlaps %v, want one from %v to %v", s.overlaps, ms(30300), ms(30800))
	}
}

// Only what hit everybody who could have led excuses a gap.
func TestGapsThatAreDisturbed(t *testing.T) {
	for name, c := range map[string]struct {
		tell    func(*script)
		counted time.Duration
		bound   time.Duration
	}{
		"nothing": {func(*script) {}, 4 * time.Second, 3350 * time.Millisecond},
		"one of two is stopped": {func(s *script) {
			s.tell(5500, "B", history.Stopped)
			s.tell(8000, "B", history.Continued)
		}, 4 * time.Second, 3350 * time.Millisecond},
		"both are disturbed": {func(s *script) {
			s.tell(5500, "B", history.Stopped)
			s.tell(8000, "B", history.Continued)
			s.tell(6000, "C", history.Fault, detail("cut"))
			s.tell(8500, "C", history.Healed, detail("cut"))
		}, time.Second, 3350 * time.Millisecond},
		"another fault of one that is healed is not healed": {func(s *script) {
			s.tell(5500, "B", history.Fault, detail("cut"))
			s.tell(5500, "C", history.Fault, detail("cut"))
			s.tell(6000, "B", history.Healed, detail("latency"))
			s.tell(8500, "C", history.Healed, detail("cut"))
		}, 500 * time.Millisecond, 3350 * time.Millisecond},
		"they stand still": {func(s *script) {
			for _, c := range []string{"B", "C"} {
				s.tell(7000, c, history.Stalled, func(e *history.Event) { e.Left = 300 * time.Millisecond })
			}
		}, 4 * time.Second, 3650 * time.Millisecond},
		"one of two was stopped and stands still": {func(s *script) {
			s.tell(5500, "B", history.Stopped)
			s.tell(8000, "B", history.Continued)
			s.tell(8001, "B", history.Stalled, func(e *history.Event) { e.Left = 2500 * time.Millisecond })
		}, 4 * time.Second, 3350 * time.Millisecond},
		"the record is spoiled": {func(s *script) {
			s.tell(5500, "", history.Spoiled)
			s.tell(7000, "", history.Removed)
		}, 2 * time.Second, 3350 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript("etcd", "one")
			for _, x := range []string{"A", "B", "C"} {
				s.tell(0, x, history.Opened)
			}
			s.tell(0, "A", history.Acquired, token(1), valid(5000))
			s.tell(5000, "A", history.Killed)
			c.tell(s)
			s.tell(9000, "C", history.Acquired, token(2), valid(1800))
			story := stories(s.h, nil)[0]
			gaps := story.gaps
			of := map[string]*figures{}
			story.count(of, map[faultOfGroup]bool{})
			if killed := of[kill]; killed.Elections != 1 || killed.Takeovers.Number() != 1 {
				t.Errorf("the election and its gap are not counted for the kill at the gap's beginning: %+v", of)
			}
			if len(gaps) != 1 || gaps[0].counted != c.counted || gaps[0].bound != c.bound || gaps[0].late() != (c.counted > c.bound) {
				t.Errorf("gaps %+v, want one of which %v count, with the bound %v", gaps, c.counted, c.bound)
			}
		})
	}
}

// Gaps that the end of the history cuts off.
func TestGapsAtTheEnd(t *testing.T) {
	s := newScript("etcd", "one")
	s.tell(0, "A", history.Opened)
	s.tell(0, "B", history.Opened)
	s.tell(0, "A", history.Acquired, token(1), valid(1000))
	s.tell(900, "A", history.Killed)
	s.tell(6000, "B", history.Terminated)
	s.tell(6010, "B", history.Exited)
	gaps := stories(s.h, nil)[0].gaps
	if len(gaps) != 1 || gaps[0].how != ends || gaps[0].length() != 5100*time.Millisecond || !gaps[0].late() {
		t.Errorf("gaps %+v, want one of 5.1 s that is over the bound: B was there and did not lead", gaps)
	}
}

// A leader that ends with all the others leaves no gap behind, and no fault.
func TestTheEndIsNoGap(t *testing.T) {
	s := newScript("etcd", "one")
	for _, c := range []string{"A", "B"} {
		s.tell(0, c, history.Opened)
	}
	s.tell(0, "A", history.Acquired, token(1), valid(1000))
	s.tell(500, "A", history.Terminated)
	s.tell(500, "A", history.Ended, token(1), detail("resigned: asked to"))
	s.tell(510, "B", history.Terminated)
	s.tell(520, "B", history.Exited)
	s.tell(520, "A", history.Exited)
	if story := stories(s.h, nil)[0]; len(story.gaps) != 0 || len(story.faults) != 0 {
		t.Errorf("gaps %+v and faults %+v, want none", story.gaps, story.faults)
	}
}

// A spoiled record that is removed is one fault, not two.
func TestMendingIsNoFault(t *testing.T) {
	s := newScript("etcd", "one")
	s.tell(0, "", history.Spoiled)
	s.tell(1000, "", history.Removed)
	s.tell(2000, "", history.Removed)
	faults := stories(s.h, nil)[0].faults
	if len(faults) != 2 || faults[0].kind != spoiled || faults[0].until != ms(1000) || faults[1].kind != removed || faults[1].from != ms(2000) {
		t.Errorf("faults %+v, want a spoiled record for 1 s, and then a removed one", faults)
	}
}

// A release of which the store did not hear leads to a takeover.
func TestFailedReleaseIsNoHandover(t *testing.T) {
	for problem, want := range map[string]string{"": handover, "no answer": takeover} {
		s := newScript("etcd", "one")
		s.tell(0, "A", history.Acquired, token(1), valid(1000))
		s.tell(500, "A", history.Ended, token(1), detail("resigned: done"))
		s.tell(510, "A", history.Released, token(1), detail(problem))
		s.tell(900, "B", history.Acquired, token(2), valid(1000))
		if gaps := stories(s.h, nil)[0].gaps; len(gaps) == 0 || gaps[0].how != want {
			t.Errorf("released with the error %q: %+v, want a %s", problem, gaps, want)
		}
	}
}

// The order in which the events are given does not matter, and is left alone.
func TestOrderOfEvents(t *testing.T) {
	h := election().h
	var want, got bytes.Buffer
	if err := Figures(&want, h, nil); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(h.Events)
	last := h.Events[0]
	if err := Figures(&got, h, nil); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("from events in disorder\n%s, want\n%s", got.String(), want.String())
	}
	if h.Events[0] != last {
		t.Error("the caller's history was put into another order")
	}
}

// A gap over its bound is shown before a longer one that is not.
func TestWorstGap(t *testing.T) {
	var g gaps
	for _, x := range []gap{{counted: 5 * time.Second, bound: 6 * time.Second}, {counted: 3 * time.Second, bound: 2 * time.Second}, {counted: 4 * time.Second, bound: 6 * time.Second}} {
		g.add(x)
	}
	if g.Longest() != 3*time.Second || !g.Late() {
		t.Errorf("%v is shown, want the one of 3 s that is late", g.Longest())
	}
}

func TestFigures(t *testing.T) {
	h := election().h
	var out bytes.Buffer
	problem := Problem{Election: "one", Rule: "mx/two-valid", Text: "two leaders", At: ms(30300)}
	if err := Figures(&out, h, []Problem{problem}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if name, rest, ok := cutColumn(line); ok {
			got[name] = strings.Join(strings.Fields(rest), " ")
		}
	}
	// faults elections lost, takeovers median longest bound, the same of
	// handovers, no leader, refused accepted stale violations overlaps length
	for name, want := range map[string]string{
		"etcd":                 "3 5 1 2 1.50 s 2 s 3.35 s 1 100 ms 100 ms 1.45 s 5.20 s 1 3 1 1 1 500 ms",
		"  process killed":     "1 1 - 1 2 s 2 s 3.35 s - 2 s 1 - - - -",
		"  process terminated": "1 1 - - 1 100 ms 100 ms 1.45 s 100 ms - - - - -",
		"  server stopped":     "1 1 1 1 1 s 1 s 3.35 s - 5.20 s - - - - -",
		"  no fault":           "- 2 - - - - 3 1 1 1 500 ms",
		"all":                  "3 5 1 2 1.50 s 2 s 3.35 s 1 100 ms 100 ms 1.45 s 5.20 s 1 3 1 1 1 500 ms",
	} {
		if got[name] != want {
			t.Errorf("%q: %q, want %q", name, got[name], want)
		}
	}
	for _, want := range []string{
		"3 faults, 5 elections, 1 overlap of valid leases (the longest of 500 ms), 1 stale write accepted, 1 refused, 1 violation.",
		"0:30  etcd  mx/two-valid: two leaders",
		"0:30  etcd  overlap: C with token 4 and D with token 5 had valid leases for 500 ms.",
		"0:30  etcd  stale write: write 2 of C was accepted, though its token 4 is not the highest.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// cutColumn cuts a line of the table behind its first column.
func cutColumn(line string) (name, rest string, ok bool) {
	text := strings.TrimLeft(line, " ")
	i := strings.Index(text, "  ")
	if i < 0 {
		return "", "", false
	}
	return line[:len(line)-len(text)+i], text[i:], true
}

// The sums of the kinds are the sum of the store.
func TestFiguresAddUp(t *testing.T) {
	h, problems := campaign(3*time.Minute, true)
	rows, stores, sum := count(stories(h, problems))
	if len(stores) != 7 || len(rows) < 30 {
		t.Fatalf("%d rows of %d stores, want some for each of the 7", len(rows), len(stores))
	}
	of := map[history.Kind]int{}
	for _, e := range h.Events {
		of[e.Kind]++
	}
	if sum.Elections != of[history.Acquired] || sum.Accepted != of[history.Accepted] || sum.Refused != of[history.Rejected] {
		t.Errorf("%d elections, %d accepted and %d refused, but the history has %d, %d and %d", sum.Elections, sum.Accepted, sum.Refused,
			of[history.Acquired], of[history.Accepted], of[history.Rejected])
	}
	if sum.Overlaps != 1 || sum.Stale != 1 || sum.Violations != 1 || sum.Overlap != 400*time.Millisecond {
		t.Errorf("%d overlaps, %d stale writes, %d violations, %v; the history has one of each, of 400 ms", sum.Overlaps, sum.Stale, sum.Violations, sum.Overlap)
	}
	if total := Total(h); total != (Sum{of[history.Acquired], 1, 1}) {
		t.Errorf("the total is %+v", total)
	}
	faults := 0
	for _, r := range rows {
		faults += r.Faults
	}
	terminated := 0
	for _, r := range rows {
		if r.Fault == terminate {
			terminated += r.Faults
		}
	}
	if want := of[history.Terminated] - 7*3; terminated != want {
		t.Errorf("%d terminations are counted as faults, want %d, all but the last three of each election", terminated, want)
	}
	if faults != sum.Faults || sum.Late != 0 {
		t.Errorf("%d faults in the rows, %d in the sum; %d late gaps, want none", faults, sum.Faults, sum.Late)
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		figures figures
		good    bool
	}{
		"nothing":       {figures{}, false},
		"good":          {figures{Elections: 5, Faults: 3, Refused: 7}, true},
		"a violation":   {figures{Elections: 5, Violations: 1}, false},
		"an overlap":    {figures{Elections: 5, Overlaps: 1}, false},
		"a stale write": {figures{Elections: 5, Stale: 1}, false},
	} {
		if v := verdict(&c.figures); v.Good != c.good {
			t.Errorf("%s: good is %v: %s", name, v.Good, v.Title)
		}
	}
}

// The verdict says whether a promise was broken, or the account does not add up.
func TestVerdictOfClasses(t *testing.T) {
	for _, c := range []struct {
		classes     []string
		title, text string
	}{
		{[]string{account}, "No promise was seen broken", "1 violation (1 of the account)."},
		{[]string{account, "safety", account}, "The promises were broken", "3 violations (1 of safety, 2 of the account)."},
		{[]string{"progress"}, "The promises were broken", "1 violation (1 of progress)."},
	} {
		s := newScript("etcd", "e")
		s.tell(0, "A", history.Acquired, token(1), valid(1800))
		var problems []Problem
		for _, class := range c.classes {
			problems = append(problems, Problem{Election: "e", At: ms(10), Class: class})
		}
		_, _, sum := count(stories(s.h, problems))
		if v := verdict(sum); v.Good || !strings.HasPrefix(v.Title, c.title) || !strings.HasSuffix(v.Text, c.text) {
			t.Errorf("%q: %q %q, want %q and %q", c.classes, v.Title, v.Text, c.title, c.text)
		}
	}
}

func TestLength(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 300 * time.Microsecond: "<1 ms", 12*time.Millisecond + 400*time.Microsecond: "12 ms",
		999600 * time.Microsecond: "1.00 s", 2 * time.Second: "2 s", 2346 * time.Millisecond: "2.35 s",
		59999 * time.Millisecond: "1 min 00 s", 125 * time.Second: "2 min 05 s",
	} {
		if got := length(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("the disk is full")

func TestErrorsOfTheWriter(t *testing.T) {
	h := election().h
	if err := Figures(fullDisk{}, h, nil); !errors.Is(err, errFull) {
		t.Errorf("Figures: %v, want %v", err, errFull)
	}
	if err := Page(fullDisk{}, h, nil, About{}); !errors.Is(err, errFull) {
		t.Errorf("Page: %v, want %v", err, errFull)
	}
}

// An overlap counts, unless the record was changed by hand during the first of
// the leases: then it is told and counted apart.
func TestOverlapsAfterTampering(t *testing.T) {
	for _, changed := range []history.Event{
		{}, {Kind: history.Removed}, {Kind: history.Restored}, {Kind: history.Spoiled},
		{Kind: history.Edited, Token: 1, Detail: history.EditedHolder},
		{Kind: history.Edited, Token: 1, Detail: history.EditedTTL},
		{Kind: history.Edited, Token: 1, Detail: history.EditedValue},
		{Kind: history.Edited, Token: 2, Detail: history.EditedHolder},
	} {
		apart := changed.Kind != "" && changed.Token != 2 && changed.Detail != history.EditedValue
		s := newScript("etcd", "e")
		s.tell(0, "A", history.Acquired, token(1), valid(1800))
		if changed.Kind != "" {
			s.tell(100, "", changed.Kind, token(int(changed.Token)), detail(changed.Detail))
		}
		s.tell(200, "B", history.Acquired, token(2), valid(1800))
		s.tell(4000, "B", history.Checked, token(2))
		_, _, sum := count(stories(s.h, nil))
		want := [2]int{1, 0}
		if apart {
			want = [2]int{0, 1}
		}
		if got := [2]int{sum.Overlaps, sum.Tampered}; got != want {
			t.Errorf("%v: %d overlaps and %d apart, want %v", changed, got[0], got[1], want)
		}
		if good := verdict(sum).Good; good != apart {
			t.Errorf("%v: the verdict is %v", changed, good)
		}
	}
}

// TestGuarded shows what counts as a stale guarded write.
func TestGuarded(t *testing.T) {
	s := election()
	s.tell(5000, "A", history.Committed, token(1), write(1))
	s.tell(6500, "A", history.Stale, token(1), write(2)) // no candidate leads yet
	s.tell(7500, "A", history.Stale, token(1), write(3))
	s.tell(7600, "A", history.Doubtful, token(1), write(4))
	s.tell(9000, "B", history.Committed, token(2), write(1))
	s.tell(30350, "C", history.Committed, token(4), write(3))
	got := GuardedWrites(s.h)
	if want := (Guarded{Store: "etcd", Accepted: 3, Refused: 2, Doubtful: 1, StaleTried: 2, StaleAccepted: 1}); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, _, sum := count(stories(s.h, nil)); sum.Stale != 2 {
		t.Errorf("%d stale writes in the table, want that to the resource and that to the store", sum.Stale)
	}
}
