package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/examples/internal/stage"
)

// A printer prints for people, with colours on a terminal: lines of 80 characters
// at most, and no movement of the cursor.
type printer struct {
	out io.Writer
	stage.Painter
	shown string        // the strip in the last line
	since time.Duration // when it began to differ
	steps int
}

func newPrinter(f *os.File) *printer { return &printer{out: f, Painter: stage.PainterFor(f)} }

// gathering is the time in which changes of owners become one line.
const gathering = 50 * time.Millisecond

// begin prints the heading of a step.
func (p *printer) begin(what string) {
	if p.steps++; p.steps == 1 {
		fmt.Fprintf(p.out, `%d partitions, a TTL of %v, an item every %v. Each letter stands for a
partition and names its owner: a small one, if that was stopped or killed.
`, partitions, ttl, every)
	}
	fmt.Fprintf(p.out, "\n%s\n", p.Paint(stage.Bold, fmt.Sprintf("%d. %s", p.steps, what)))
}

// line prints the owners at some time, and what happened.
func (p *printer) line(at time.Duration, strip, text string) {
	p.shown, p.since = strip, 0
	fmt.Fprintf(p.out, "%6.2f s  %s  %s\n", at.Seconds(), p.letters(strip), text)
}

// event prints a line if something is done to a member, or it ends, and one for all
// changes of owners that come together.
func (p *printer) event(e stage.Event, start time.Duration, strip string) {
	at := e.Boot - start
	if p.since > 0 && at-p.since >= gathering && strip != p.shown {
		p.line(p.since, strip, shares(strip))
	}
	if strip != p.shown && p.since == 0 {
		p.since = at
	}
	colour, text := stage.Yellow, ""
	switch e.Kind {
	case stage.Started:
		colour, text = stage.Plain, "starts as process "+e.Detail
	case stage.Killed:
		text = "is killed"
	case stage.Stopped:
		text = "is stopped"
	case stage.Continued:
		text = "goes on"
	case stage.Terminated:
		text = "is told to leave"
	case stage.Exited:
		colour, text = stage.Plain, "has ended"
	case lost:
		text = "has lost its lease"
	case failed:
		colour, text = stage.Red, "cannot count: "+e.Detail
	}
	if text != "" {
		p.line(at, strip, p.Paint(colour, e.Process+" "+text))
	}
}

// settled prints what a step took.
func (p *printer) settled(s summary, start time.Duration, strip string) {
	if strip != p.shown {
		p.line(p.since, strip, shares(strip))
	}
	overlaps := p.Paint(stage.Green, "overlaps 0")
	if s.overlaps > 0 {
		overlaps = p.Paint(stage.Red, fmt.Sprintf("OVERLAPS %d", s.overlaps))
	}
	fmt.Fprintf(p.out, "   => %d of %d moved in %.2f s; longest without an owner %.2f s; %s\n", s.moved, partitions, s.took.Seconds(), s.without.Seconds(), overlaps)
}

// shares says how many partitions each member has.
func shares(strip string) string {
	has := map[string]int{}
	for _, letter := range strip {
		if letter == '.' {
			has["no owner"]++
		} else {
			has[string(letter)]++
		}
	}
	var text []string
	for _, owner := range slices.Sorted(maps.Keys(has)) {
		text = append(text, fmt.Sprintf("%s %d", owner, has[owner]))
	}
	return strings.Join(text, "  ")
}

// letters paints each member in a colour of its own.
func (p *printer) letters(strip string) string {
	colours := map[rune]string{'A': "32", 'B': "36", 'C': "33", 'D': "35", 'E': "34"}
	var text strings.Builder
	for _, letter := range strip {
		text.WriteString(p.Paint(colours[letter], string(letter)))
	}
	return text.String()
}

func (p *printer) verdict(v *verdict) {
	row := func(what, format string, args ...any) {
		fmt.Fprintf(p.out, "  %-26s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(p.out)
	row("items", "%d came, %d were counted once, %d twice, %d lost", v.items, v.counted, v.twice, v.lost)
	row("late requests", "%d tried, %d refused", v.tried, v.refused)
	row("leases on partitions", "%d, overlaps of valid ones: %d", v.leases, v.overlaps)
	fmt.Fprint(p.out, `
A lease counts as valid from when its worker first looked at it until what
Remaining said last, or until the worker has returned; all on the machine's
boot-time clock, as its process reported at each renewal.

`)
	for i, problem := range v.problems {
		if i == 20 {
			fmt.Fprintf(p.out, "… and %d more\n", len(v.problems)-i)
			break
		}
		fmt.Fprintln(p.out, p.Paint(stage.Red, "NOT AS PROMISED: ")+problem)
	}
	if len(v.problems) == 0 {
		fmt.Fprintln(p.out, p.Paint(stage.Bold, "Everything was as promised."))
	}
}
