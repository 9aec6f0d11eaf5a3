package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/elector-go/elector/examples/singleton/demo"
)

// A row is what came of one store.
type row struct {
	kind, how string
	figures   *demo.Figures // nil if there are none
	err       error         // why there are none, or why the store did not end well
}

// wrong returns what was not as promised.
func (r row) wrong() []string {
	var all []string
	if r.figures != nil {
		all = append(all, r.figures.Problems...)
	}
	if r.err != nil {
		all = append(all, r.err.Error())
	}
	if r.figures == nil && r.err == nil {
		all = append(all, "nothing was measured")
	}
	return all
}

// report prints a table, and below it everything that is wrong. It returns
// whether nothing is.
func report(out io.Writer, rows []row) bool {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "store\tTTL\tconnect\tacquire\thandover\ttakeover\tat most\trequests\truns as")
	for _, r := range rows {
		how, _, _ := strings.Cut(r.how, "; ") // there may follow why not otherwise
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.kind, strings.Join(cells(r.figures), "\t"), how)
	}
	t.Flush()
	fmt.Fprint(out, `
connect   from the start of the first process until the store had answered
acquire   from there until it led, as the only candidate
handover  from SIGTERM to the leader until the other process led
takeover  from kill -9 of the leader until the other process led; on a machine
          that is not busy at most as long as a challenger must wait, TTL*1.1,
          and one read interval, one RequestTimeout and the random wait more
requests  a minute that the waiting process asks for; what a watch of the store
          sends and reads by itself is counted by make bench

`)
	good := true
	for _, r := range rows {
		if r.figures != nil {
			if r.figures.Tokens != nil {
				fmt.Fprintf(out, "Tokens of %s, in order: %v\n", r.kind, r.figures.Tokens)
			}
			for _, late := range r.figures.Late {
				fmt.Fprintf(out, "Late on %s: %s\n", r.kind, late)
			}
		}
		wrong := r.wrong()
		for _, problem := range wrong {
			fmt.Fprintf(out, "NOT AS PROMISED on %s: %s\n", r.kind, problem)
		}
		if len(wrong) > 0 && r.figures != nil {
			fmt.Fprintf(out, "What happened on %s:\n%s\n", r.kind, r.figures.TimeLine)
		}
		good = good && len(wrong) == 0
	}
	if good {
		fmt.Fprintln(out, "Nowhere were two leases valid at once, and all tokens grew from leader to leader.")
	}
	return good
}

// cells are a table's, dashes where nothing was measured.
func cells(f *demo.Figures) []string {
	if f == nil {
		f = &demo.Figures{}
	}
	requests := "–"
	if f.Idle > 0 {
		requests = fmt.Sprintf("%.1f", f.PerMinute())
	}
	return []string{duration(f.TTL), duration(f.Connect), duration(f.Acquire), duration(f.Handover),
		duration(f.Takeover), duration(f.TakeoverLimit), requests}
}

// duration prints a time to three digits or so.
func duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
