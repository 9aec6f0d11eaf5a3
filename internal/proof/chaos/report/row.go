package report

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// Lengths of a row, in units.
const (
	rowWidth   = 340.0
	rowRight   = rowWidth - 5
	axisHeight = 14.0
	textHeight = 11.5 // of a line of text, whose font size is 10.5
	barHeight  = 13.0
	laneHeight = 20.0
)

// A row is a part of an election's time line that fits the width of a phone.
type row struct {
	drawing
	s           *story
	from, until time.Duration
	events      []history.Event // of this time
	left        float64         // where the time begins, right of the names
	y           float64         // where the next lane begins
	flags       float64         // where the lines of broken rules begin, below their names
}

func (s *story) newRow(from, until time.Duration) *row {
	at := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(s.events, t, func(e history.Event, t time.Duration) int { return cmp.Compare(e.At, t) })
		return i
	}
	return &row{s: s, from: from, until: until, events: s.events[at(from):at(until)], y: axisHeight}
}

// rowLength is how much time a row shows: room for some takeovers.
func rowLength(r history.Rules) time.Duration {
	const step = 10 * time.Second
	return min(max((6*r.Takeover+step-1)/step*step, 2*step), 6*step)
}

// x is where a time is drawn, clipped to the row.
func (r *row) x(at time.Duration) float64 {
	at = min(max(at, r.from), r.until)
	return r.left + float64(at-r.from)/float64(r.until-r.from)*(rowRight-r.left)
}

// has tells whether a time is within the row.
func (r *row) has(at time.Duration) bool { return r.from <= at && at < r.until }

// meets tells whether an interval reaches into the row.
func (r *row) meets(i interval) bool { return i.from < r.until && i.until >= r.from }

// since writes a time as in all titles: seconds since the history's beginning.
func (r *row) since(at time.Duration) string {
	d := at - r.s.begin
	return fmt.Sprintf("%s.%03d", clock(d), d%time.Second/time.Millisecond)
}

func (r *row) span(i interval) string {
	return fmt.Sprintf("%s to %s, %s", r.since(i.from), r.since(i.until), length(i.until-i.from))
}

// drawRow returns one row as SVG.
func (s *story) drawRow(from, until time.Duration, left float64) string {
	r := s.newRow(from, until)
	r.left = left
	var back, lanes drawing // what is behind all lanes is known only when they are drawn
	r.leaders()
	r.store()
	top := r.y
	for _, l := range s.lives {
		if r.shows(l) {
			r.lane(l)
		}
	}
	lanes.WriteString(r.String())
	r.Reset()
	r.background(top)
	back.WriteString(r.String())
	name := fmt.Sprintf("%s to %s: %s", clock(from-s.begin), clock(until-s.begin), s.summary(from, until))
	return fmt.Sprintf(`<svg class="row" viewBox="0 0 %s %s" role="img" aria-label="%s">%s%s</svg>`,
		num(rowWidth), num(r.y+2), html.EscapeString(name), back.String(), lanes.String())
}

// shows tells whether a candidate has a lane in this row: not before it begins,
// nor after the row in which its process and its last lease ended.
func (r *row) shows(l *life) bool {
	if l.from >= r.until {
		return false
	}
	if l.how == "" || l.died >= r.from {
		return true
	}
	for _, p := range r.s.spans {
		if p.candidate == l.candidate && p.until >= r.from {
			return true
		}
	}
	for _, e := range r.events {
		if e.Candidate == l.candidate && (e.Kind == history.Rejected || e.Kind == history.Accepted) {
			return true // a write that was on its way when its process died
		}
	}
	return false
}

// background draws the axis, and what hit all candidates.
func (r *row) background(top float64) {
	const step = 5 * time.Second
	bottom := r.y
	grid := ""
	for t := r.from; t <= r.until; t += step {
		grid += fmt.Sprintf("M%s %sV%s", num(r.x(t)), num(axisHeight-2), num(bottom))
		if (t-r.from)%(2*step) == 0 && t < r.until {
			r.text("time", "start", r.x(t)-2, axisHeight-4, clock(t-r.s.begin))
		}
	}
	r.path("grid", grid, "")
	if r.s.end < r.until {
		r.path("over", fmt.Sprintf("M%s %sV%s", num(r.x(r.s.end)), num(axisHeight-2), num(bottom)), "the history ends")
	}
	for _, f := range r.s.faults {
		if f.candidate == "" && f.lasting && r.meets(f.interval) {
			r.rect("storefault", r.x(f.from), top, r.x(f.until)-r.x(f.from), bottom-top, r.tell(f))
		}
	}
	for _, o := range r.s.overlaps {
		if r.meets(o.interval) {
			r.rect("overlapband", r.x(o.from), top, r.x(o.until)-r.x(o.from), bottom-top, "")
		}
	}
	for _, p := range r.s.problems {
		if r.has(p.At) {
			r.path("problem", fmt.Sprintf("M%s %sV%s", num(r.x(p.At)), num(r.flags), num(bottom)), p.Rule+": "+p.Text)
		}
	}
}

func (r *row) tell(f fault) string {
	what := f.kind
	if f.candidate == "" && f.lasting {
		what = "store: " + what
	}
	if f.lasting && !f.healed {
		return what + ", not healed: " + r.span(f.interval)
	}
	return what + ": " + r.span(f.interval)
}

// name writes a lane's name.
func (r *row) name(s string, baseline float64, title string) {
	const most = 8
	short := s
	if len([]rune(s)) > most {
		short = string([]rune(s)[:most-1]) + "…"
	}
	fmt.Fprintf(r, `<text class="name" text-anchor="end" x="%s" y="%s">%s<title>%s</title></text>`,
		num(r.left-5), num(r.y+baseline), html.EscapeString(short), html.EscapeString(title))
}

// labels draws lines of labels and moves on below them.
func (r *row) labels(labels []label, most int) {
	placed, lines := arrange(labels, r.left, rowRight, most)
	for _, l := range placed {
		r.text(l.class, "start", l.x, r.y+float64(l.line)*textHeight+textHeight-2.5, l.text)
	}
	r.y += float64(lines) * textHeight
}

// leaders draws the lane of the gaps and overlaps, if there are any: lengths,
// and below them where they are.
func (r *row) leaders() {
	var labels []label
	type bracket struct {
		class, title string
		i            interval
	}
	var brackets []bracket
	for _, p := range r.s.problems {
		if r.has(p.At) {
			labels = append(labels, label{class: "bad", at: r.x(p.At), text: "! " + p.Rule})
		}
	}
	for _, o := range r.s.overlaps {
		if r.meets(o.interval) {
			labels = append(labels, label{class: "bad", at: (r.x(o.from) + r.x(o.until)) / 2, text: "overlap " + length(o.until-o.from)})
			brackets = append(brackets, bracket{"overlap", fmt.Sprintf("two valid leases: %s (%v) and %s (%v), %s", o.one.candidate, o.one.token, o.other.candidate, o.other.token, r.span(o.interval)), o.interval})
		}
	}
	for _, g := range r.s.gaps {
		if !r.meets(g.interval) {
			continue
		}
		class, title := "gap", "no leader: "+r.span(g.interval)
		text := length(g.length())
		switch g.how {
		case first:
			title += "; the first leader of the election"
		case ends:
			title += "; to the end of the history"
		default:
			title += "; " + g.how
		}
		if g.counted < g.length() {
			title += fmt.Sprintf("; a candidate could have led for the last %s of it", length(g.counted))
		}
		title += fmt.Sprintf("; bound %s", length(g.bound))
		if g.late() {
			class, text = "gap late", text+" late"
		}
		labels = append(labels, label{class: "length", at: (r.x(g.from) + r.x(g.until)) / 2, text: text})
		brackets = append(brackets, bracket{class, title, g.interval})
	}
	if len(brackets)+len(labels) == 0 {
		return
	}
	r.labels(labels, 3)
	r.flags = r.y
	r.name("gaps", 8, "times without a leader, and overlaps of leases")
	for _, b := range brackets {
		x := r.x(b.i.from)
		if b.class == "overlap" {
			r.rect("overlap", x, r.y, max(r.x(b.i.until)-x, 2), 9, b.title)
			continue
		}
		r.rect(b.class, x, r.y+1, max(r.x(b.i.until)-x, 1.2), 7, b.title)
	}
	r.y += 15
}

// store draws the lane of what was done to the store and the record.
func (r *row) store() {
	var labels []label
	var marks drawing
	for _, f := range r.s.faults {
		if f.candidate != "" || !r.meets(f.interval) {
			continue
		}
		x := r.x(f.from)
		labels = append(labels, label{class: "fault", at: (x + r.x(f.until)) / 2, text: f.kind})
	}
	if len(labels) == 0 {
		return
	}
	r.labels(labels, 3)
	r.name("store", 8, "faults of the store and its record")
	for _, f := range r.s.faults {
		if f.candidate != "" || !r.meets(f.interval) {
			continue
		}
		if x := r.x(f.from); f.lasting {
			r.rect("broken", x, r.y+1, max(r.x(f.until)-x, 1.5), 7, r.tell(f))
		} else if r.has(f.from) {
			symbol := "edited"
			if f.kind == removed || f.kind == restored {
				symbol = "record"
			}
			marks.mark(symbol, x, r.y+5, r.tell(f))
		}
	}
	r.WriteString(marks.String())
	r.y += 15
}

// summary says in words what a row shows.
func (s *story) summary(from, until time.Duration) string {
	var parts []string
	r := s.newRow(from, until)
	faults := map[string]int{}
	var kinds []string
	for _, f := range s.faults {
		if r.has(f.from) {
			if faults[f.kind]++; faults[f.kind] == 1 {
				kinds = append(kinds, f.kind)
			}
		}
	}
	for _, k := range kinds {
		if faults[k] > 1 {
			k = fmt.Sprintf("%d times %s", faults[k], k)
		}
		parts = append(parts, k)
	}
	won := 0
	for _, e := range r.events {
		if e.Kind == history.Acquired {
			won++
		}
	}
	if won > 0 {
		parts = append(parts, plural(won, "election", "elections"))
	}
	for _, o := range s.overlaps {
		if r.has(o.from) {
			parts = append(parts, "an overlap of "+length(o.until-o.from))
		}
	}
	if len(parts) == 0 {
		return "nothing happened, " + s.leads(from)
	}
	return strings.Join(parts, ", ")
}

// leads says who leads at a time.
func (s *story) leads(at time.Duration) string {
	for _, p := range slices.Backward(s.spans) {
		if p.from <= at && at < min(p.until, s.dies(p.candidate)) {
			return p.candidate + " leads"
		}
	}
	return "no candidate leads"
}

// quiet tells whether nothing happened in a row: nothing broken, no candidate elected,
// no lease over, no gap, only renewals, checks and writes.
func (s *story) quiet(from, until time.Duration) bool {
	r := s.newRow(from, until)
	for _, e := range r.events {
		switch e.Kind {
		case history.Renewed, history.Checked, history.Observed, history.Writing, history.Wrote, history.Accepted, history.Committed, history.Kept, history.Stalled, history.Shown:
		default:
			return false
		}
	}
	for _, f := range s.faults {
		if r.meets(f.interval) {
			return false
		}
	}
	for _, g := range s.gaps {
		if r.meets(g.interval) {
			return false
		}
	}
	for _, o := range s.overlaps {
		if r.meets(o.interval) {
			return false
		}
	}
	for _, e := range s.stale {
		if r.has(e.At) {
			return false
		}
	}
	for _, p := range s.problems {
		if r.has(p.At) {
			return false
		}
	}
	return true
}
