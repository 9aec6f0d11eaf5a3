package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/elector-go/elector/bench/results"
)

// A Plot is a picture beside the page: an SVG file without anything outside it.
type Plot struct {
	Subject string // in whose section it stands
	Name    string // of the file, without .svg
	Alt     string // for those who cannot see it
	SVG     string
}

// A drawing says which figures a plot has.
type drawing struct {
	subject, what, unit string
	name, title, across string
}

var drawings = []drawing{
	{results.Cost, "handover", "requests", "handover-requests", "Requests of a handover", "waiters"},
	{results.Handover, "from resign to the successor knowing", "ms", "handover", "From a release to the successor", "waiters"},
	{results.Scale, "requests to hold all of them", "", "holding", "Requests to hold all elections of a process", "elections"},
	{results.Scale, "memory per further election", "", "memory", "Memory of each further election of a process", "elections"},
	{results.Scale, "goroutines per further election", "", "goroutines", "Goroutines of each further election of a process", "elections"},
}

// Plots draws the plots of all subjects that figures are of. A subject without
// the figures that its plot wants is an error: they are called otherwise then.
func Plots(figures []results.Figure) (plots []Plot, err error) {
	for _, d := range drawings {
		if !slices.ContainsFunc(figures, func(f results.Figure) bool { return f.Subject == d.subject && len(f.Values) > 0 }) {
			continue
		}
		panels, unit := d.panels(figures)
		if len(panels) == 0 {
			return nil, fmt.Errorf("no figure of the subject %s is called %q with a number of %s: there is nothing to plot", d.subject, d.what, d.across)
		}
		plots = append(plots, Plot{
			Subject: d.subject,
			Name:    d.name,
			Alt:     alternative(d.title, d.across, panels),
			SVG:     draw(d.heading(unit), d.across, panels),
		})
	}
	return plots, nil
}

// heading names the unit too, if the title does not.
func (d drawing) heading(unit string) string {
	if strings.HasPrefix(strings.ToLower(d.title), unit) {
		return d.title
	}
	return d.title + ", " + unit
}

// A panel is what was measured on one store.
type panel struct {
	title   string
	lines   []series
	missing []string // libraries without a value
}

// A series is the medians of one library.
type series struct {
	library string
	sign    int // the same in all plots
	points  []point
}

type point struct{ x, y float64 }

func (d drawing) panels(figures []results.Figure) (panels []panel, unit string) {
	for _, t := range tables(figures, d.subject) {
		p := panel{title: title(t.store)}
		for _, l := range t.libraries {
			s := series{library: l, sign: sign(figures, t.store, l)}
			has := false
			for _, r := range t.rows {
				f, ok := r.cells[l]
				if !ok || r.what != d.what || r.count == 0 || d.unit != "" && r.unit != d.unit {
					continue
				}
				has, unit = true, r.unit
				if len(f.Values) > 0 {
					s.points = append(s.points, point{float64(f.Count), f.Median()})
				}
			}
			slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
			switch {
			case len(s.points) > 0:
				p.lines = append(p.lines, s)
			case has:
				p.missing = append(p.missing, l)
			}
		}
		if len(p.lines) > 0 {
			panels = append(panels, p)
		}
	}
	return panels, unit
}

// sign is the place of a library among those of its store, ours first.
func sign(figures []results.Figure, store, library string) int {
	seen := []string{ours}
	for _, f := range figures {
		if f.Store == store && !slices.Contains(seen, f.Library) {
			seen = append(seen, f.Library)
		}
	}
	return slices.Index(seen, library)
}

// alternative says in words what ours does in the plot.
func alternative(what, across string, panels []panel) string {
	var said []string
	for _, p := range panels {
		for _, s := range p.lines {
			if s.library != ours {
				continue
			}
			first, last := s.points[0], s.points[len(s.points)-1]
			said = append(said, fmt.Sprintf("%s %s to %s", p.title, number(first.y, false), number(last.y, false)))
		}
	}
	return fmt.Sprintf("%s against the number of %s, a line for each library, a panel for each store; %s: %s. The figures are in the tables below.", what, across, ours, strings.Join(said, ", "))
}
