package report

import (
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/results"
)

func TestGroups(t *testing.T) {
	g := &Groups{
		Date: time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC), TTL: 6 * time.Second, Members: 4, Partitions: 16, Stopped: 2, Dark: 3, Rounds: 3,
		Libraries: []Library{{"ours", "a/b", "as in this tree", "etcd 3.7", "defaults"}, {"x|y", "c/d", "v1.2.3", "kfake", "sticky"}},
		Figures: []results.Figure{
			{Library: "ours", What: "join: moves", Unit: "moves", Values: []float64{4, 4}},
			{Library: "ours", What: "join: none", Unit: "s", Values: []float64{0.12344, 0.00001, 0.2}},
			{Library: "x|y", What: "join: moves", Unit: "moves"},
			{Library: "x|y", What: "crash: none", Unit: "s", Values: []float64{7}, Note: "at least: x"},
		},
	}
	var b strings.Builder
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	cells := 0
	for n, line := range strings.Split(b.String(), "\n") {
		bars := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = bars
		case bars != cells:
			t.Errorf("line %d has %d bars and not %d: %s", n+1, bars, cells, line)
		}
	}
	for _, want := range []string{
		"on 25 November 2026", "shared by 3 processes", "after 12 s", "for 18 s", "here 3,",
		"\n| join: moves | 4 | – |\n",
		"\n| join: none: s | 0.123 (0–0.2) | |\n",
		"\n| crash: none: s | | ≥ 7 |\n",
		`| x\|y | c/d v1.2.3 | kfake | sticky |`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the section lacks %q:\n%s", want, b.String())
		}
	}
}
