package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"length": length, "clock": clock, "number": number, "some": some, "thousands": thousands, "plural": plural,
}).Parse(pageText))

// Page writes a history as one HTML page that needs nothing else: no other file,
// no network, and no script but to show on a touch screen what a pointer would.
// The figures are those of Figures. Each election has a time line, in rows that
// fit a phone; rows in which nothing happened are folded. It returns an error of
// out.
func Page(out io.Writer, h *history.History, problems []Problem, about About) error {
	all := stories(h, problems)
	rows, stores, sum := count(all)
	begin, end := bounds(h.Events)
	if about.Took == 0 {
		about.Took = end - begin
	}
	v := view{
		Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		About: about, Verdict: verdict(sum), Sum: sum, Legend: legend(),
	}
	for _, f := range stores {
		g := group{Figures: f}
		for _, r := range rows {
			if r.Store == f.Store {
				g.Rows = append(g.Rows, r)
			}
		}
		for i, s := range all {
			if s.store() == f.Store && g.Link == "" {
				g.Link = lineName(i)
			}
		}
		v.Groups = append(v.Groups, g)
	}
	v.Findings = findings(all)
	const most = 100
	if n := len(v.Findings) - most; n > 0 {
		v.Findings, v.More = v.Findings[:most], n
	}
	for i, s := range all {
		v.Lines = append(v.Lines, s.line(lineName(i)))
	}
	for i, f := range v.Findings {
		for _, l := range v.Lines {
			if l.Election.Name == f.Election {
				v.Findings[i].Row = l.rowAt(f)
			}
		}
	}
	var buffer bytes.Buffer
	if err := page.Execute(&buffer, v); err != nil {
		return err
	}
	_, err := out.Write(buffer.Bytes())
	return err
}

// lineName is the identifier of a time line within the page.
func lineName(i int) string { return fmt.Sprintf("line%d", i+1) }

// A view is what the page's template shows.
type view struct {
	Style    template.CSS
	Script   template.JS
	About    About
	Verdict  judgement
	Sum      *figures
	Groups   []group
	Findings []finding
	More     int // findings that are left out
	Legend   []legendItem
	Lines    []line
}

// A group is the figures of one store.
type group struct {
	Figures *figures
	Link    string // to its first time line
	Rows    []*figures
}

// A line is the time line of one election.
type line struct {
	ID       string
	Election history.Election
	Figures  *figures
	Handover time.Duration // the bound of a handover
	Overview template.HTML
	Parts    []part
	rows     []interval // since the history's beginning
}

// A part is a row, or some in which nothing happened.
type part struct {
	ID       string
	Time     string
	Summary  string
	Quiet    bool
	Drawings []template.HTML
}

// rowAt returns the identifier of the row that shows a finding.
func (l line) rowAt(f finding) string {
	for i, r := range l.rows {
		if f.When != "" && (f.at < r.until || i == len(l.rows)-1) {
			return l.Parts[i].ID
		}
	}
	return l.ID
}

// line draws an election.
func (s *story) line(id string) line {
	of := map[string]*figures{}
	s.count(of, map[faultOfGroup]bool{})
	sum := &figures{}
	for _, f := range of {
		sum.merge(f)
	}
	l := line{ID: id, Election: s.election, Figures: sum, Handover: handoverBound(s.election.Rules), Overview: template.HTML(s.overview())}
	left := widthOf("store") + 7
	for _, v := range s.lives {
		left = max(left, min(widthOf(v.candidate)+7, 66))
	}
	step := rowLength(s.election.Rules)
	for from := s.begin; from <= s.end; from += step {
		until := from + step
		drawing := template.HTML(s.drawRow(from, until, left))
		quiet := s.quiet(from, until)
		if n := len(l.Parts); quiet && n > 0 && l.Parts[n-1].Quiet {
			l.Parts[n-1].Drawings = append(l.Parts[n-1].Drawings, drawing)
			l.rows[n-1].until = until - s.begin
		} else {
			l.Parts = append(l.Parts, part{ID: fmt.Sprintf("%s-%d", id, (from-s.begin)/time.Second), Summary: s.summary(from, until), Quiet: quiet, Drawings: []template.HTML{drawing}})
			l.rows = append(l.rows, interval{from - s.begin, until - s.begin})
		}
	}
	for i, r := range l.rows {
		l.Parts[i].Time = clock(r.from) + " to " + clock(r.until)
	}
	return l
}

// overview draws the whole election as one strip without text, which may be
// stretched: who leads, gaps, overlaps, and faults.
func (s *story) overview() string {
	const width, height = 1000.0, 20.0
	if s.end == s.begin {
		return ""
	}
	var d drawing
	x := func(at time.Duration) float64 { return float64(at-s.begin) / float64(s.end-s.begin) * width }
	bar := func(class string, i interval, y, h, least float64) {
		fmt.Fprintf(&d, `<rect class="%s" x="%.1f" y="%s" width="%.1f" height="%s"/>`, class, x(i.from), num(y), max(x(i.until)-x(i.from), least), num(h))
	}
	turn := map[string]int{}
	for _, p := range s.spans {
		if _, ok := turn[p.candidate]; !ok {
			turn[p.candidate] = len(turn) % 2
		}
		bar(fmt.Sprintf("who%d", turn[p.candidate]), interval{p.from, min(p.until, s.dies(p.candidate))}, 0, 12, 0.5)
	}
	for _, o := range s.overlaps {
		bar("overlap", o.interval, 0, 12, 4)
	}
	for _, f := range s.faults {
		bar("hit", f.interval, 14, 6, 1.5)
	}
	return fmt.Sprintf(`<svg class="overview" viewBox="0 0 %s %s" preserveAspectRatio="none" role="img" aria-label="who leads, and below it the faults, from %s to %s">%s</svg>`,
		num(width), num(height), clock(0), clock(s.end-s.begin), d.String())
}

// A legendItem is a shape and what it means.
type legendItem struct {
	Shape template.HTML
	Text  string
}

func legend() []legendItem {
	shape := func(draw func(*drawing)) template.HTML {
		var d drawing
		draw(&d)
		return template.HTML(`<svg class="sample" viewBox="0 0 40 20" aria-hidden="true">` + d.String() + `</svg>`)
	}
	items := []legendItem{
		{shape(func(d *drawing) {
			d.rect("lead", 2, 3, 36, barHeight, "")
			d.path("k-renewed", "M12 16v-3M22 16v-3M32 16v-3", "")
		}), "leads; the number is its token, each tick a renewal"},
		{shape(func(d *drawing) { d.rect("orphan", 2, 3.5, 36, barHeight-1, "") }), "dead, its lease runs on"},
		{shape(func(d *drawing) { d.path("wait", "M2 10H38", "") }), "waits"},
		{shape(func(d *drawing) { d.path("opening", "M2 10H38", "") }), "starts"},
		{shape(func(d *drawing) { d.path("dead", "M2 10H38", "") }), "dead"},
		{shape(func(d *drawing) { d.rect("stop", 2, 3, 36, barHeight, "") }), "stopped (SIGSTOP)"},
		{shape(func(d *drawing) { d.rect("broken", 2, 8, 36, 4.5, "") }), "cut off or disturbed, as named"},
		{shape(func(d *drawing) { d.rect("storefault", 2, 2, 36, 16, "") }), "the store is broken, for all"},
		{shape(func(d *drawing) { d.rect("gap", 6, 7, 28, 7, "") }), "no candidate leads, with its length"},
		{shape(func(d *drawing) { d.rect("gap late", 6, 7, 28, 7, "") }), "no candidate leads for longer than the bound"},
		{shape(func(d *drawing) { d.rect("overlap", 6, 5, 28, 9, "") }), "two valid leases: an overlap"},
		{shape(func(d *drawing) { d.path("problem", "M20 2V18", "") }), "a rule is broken"},
		{shape(func(d *drawing) { d.path("k-trouble", "M12 8v4.5M18 8v4.5M21 8v4.5M28 8v4.5", "") }), "requests fail"},
		{shape(func(d *drawing) { d.path("k-stalled", "M6 10H34", "") }), "stands still, too slow a machine"},
	}
	for _, s := range symbols {
		items = append(items, legendItem{shape(func(d *drawing) { d.mark(s.name, 20, 10, "") }), s.legend})
	}
	return items
}
