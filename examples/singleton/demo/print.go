package demo

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/elector-go/elector/examples/internal/stage"
)

// A printer prints for people, with colours on a terminal.
type printer struct {
	out io.Writer
	stage.Painter
}

func newPrinter(f *os.File) *printer { return &printer{f, stage.PainterFor(f)} }

// event prints a line of the time line, unless it is everyday business:
// renewals, and all but the first write of a leader.
func (p *printer) event(at time.Duration, e Event, firstWrite, held bool) {
	colour, text := stage.Plain, ""
	switch e.Kind {
	case started:
		text = "starts as process " + e.Detail
	case waits:
		text = "waits: " + e.Detail + " leads"
	case leads:
		colour, text = stage.Green, fmt.Sprintf("LEADS with token %v", e.Token)
	case about:
		if held {
			text = fmt.Sprintf("has checked its lease, %.1f s left, and is about to write invoice %d", e.Left.Seconds(), e.Number)
		}
	case wrote:
		if firstWrite {
			text = fmt.Sprintf("writes invoice %d, and more", e.Number)
		}
	case refused:
		colour, text = stage.Red, fmt.Sprintf("its late write of invoice %d is REFUSED, token %v is stale", e.Number, e.Token)
		if !e.Valid {
			text += "; its Check fails too"
		}
	case failed:
		colour, text = stage.Red, "cannot write: "+e.Detail
	case ended:
		text = "leads no more: it has resigned"
		if e.Detail == lost {
			text = "leads no more: its lease is lost"
		}
	case killed:
		colour, text = stage.Yellow, "is killed with kill -9"
	case stopped:
		colour, text = stage.Yellow, "is stopped with SIGSTOP, right there"
	case continued:
		colour, text = stage.Yellow, "is continued with SIGCONT, and goes on to write"
	case terminated:
		colour, text = stage.Yellow, "is told to end with SIGTERM"
	case exited:
		text = "has ended"
		if e.Detail != "" {
			text += " (" + e.Detail + ")"
		}
	}
	if text != "" {
		fmt.Fprintf(p.out, "%6.2f s  %s  %s\n", at.Seconds(), e.Process, p.Paint(colour, text))
	}
}

func (p *printer) verdict(v *verdict) {
	row := func(what, format string, args ...any) {
		fmt.Fprintf(p.out, "  %-26s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(p.out)
	inTime := true
	for _, s := range v.steps {
		row(s.what, "%.2f s, at most %.2f s on a machine that is not busy", s.took.Seconds(), s.limit.Seconds())
		if late := s.late(); late != "" {
			row("", "%s", p.Paint(stage.Yellow, late))
			inTime = false
		}
	}
	row("elections", "%d", v.elections)
	row("overlaps of valid leases", "%d", v.overlaps)
	row("stale writes", "%d tried, %d refused", v.tried, v.refused)
	row("tokens in the journal", "%s, in %d lines", map[bool]string{true: "strictly increasing from leader to leader", false: "NOT increasing"}[v.growing], v.invoices)
	fmt.Fprint(p.out, `
A lease counts as valid from when the request that won it was sent until what
Remaining said last, or until it was resigned; all on the machine's boot-time
clock, as its process reported at each check and renewal.

`)
	for _, problem := range v.problems {
		fmt.Fprintln(p.out, p.Paint(stage.Red, "NOT AS PROMISED: ")+problem)
	}
	switch {
	case len(v.problems) > 0:
	case inTime:
		fmt.Fprintln(p.out, p.Paint(stage.Bold, "Everything was as promised."))
	default:
		fmt.Fprintln(p.out, p.Paint(stage.Bold, "Everything was as promised, but late.")+" On a busy machine that is no failure.")
	}
}
