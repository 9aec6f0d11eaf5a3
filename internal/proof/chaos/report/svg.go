package report

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// A drawing is SVG that is being written. All lengths are in units of the
// viewBox, which is as wide as a small phone has pixels.
type drawing struct{ strings.Builder }

// num writes a length with a tenth of a unit.
func num(x float64) string {
	s := strconv.FormatFloat(x, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// open and close of an element's content: the title, which browsers show when
// the pointer rests on it.
func (d *drawing) end(element, title string) {
	if title == "" {
		d.WriteString("/>")
		return
	}
	fmt.Fprintf(d, "><title>%s</title></%s>", html.EscapeString(title), element)
}

func (d *drawing) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(d, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, num(x), num(y), num(max(w, 0.4)), num(h))
	d.end("rect", title)
}

func (d *drawing) path(class, data, title string) {
	fmt.Fprintf(d, `<path class="%s" d="%s"`, class, data)
	d.end("path", title)
}

// mark draws one of the page's symbols.
func (d *drawing) mark(symbol string, x, y float64, title string) {
	fmt.Fprintf(d, `<use class="m-%s" href="#m-%s" x="%s" y="%s"`, symbol, symbol, num(x), num(y))
	d.end("use", title)
}

// text draws text; anchor is start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(d, `<text class="%s"`, class)
	if anchor != "start" {
		fmt.Fprintf(d, ` text-anchor="%s"`, anchor)
	}
	fmt.Fprintf(d, ` x="%s" y="%s">%s</text>`, num(x), num(y), html.EscapeString(s))
}

// widthOf is about how wide a text is, in a wide font.
func widthOf(s string) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune(" .,:;ijlt'|()!", r):
			w += 4.4
		case strings.ContainsRune("mwMW…", r):
			w += 10
		default:
			w += 6.7
		}
	}
	return w
}

// A label is a text that is drawn near a place, if there is room.
type label struct {
	class string
	at    float64 // its middle
	text  string
	x     float64 // where it begins
	line  int
}

// arrange puts labels into lines between left and right so that none touches
// another, and returns those for which there is room and the number of lines.
func arrange(labels []label, left, right float64, most int) (placed []label, lines int) {
	const space = 4
	var ends [][][2]float64
	for _, l := range labels {
		w := widthOf(l.text)
		if l.class != "fault" {
			w *= 1.1 // the others are bold
		}
		if w > right-left {
			continue
		}
		l.x = min(max(l.at-w/2, left), right-w)
	search:
		for l.line = 0; l.line < most; l.line++ {
			if l.line == len(ends) {
				ends = append(ends, nil)
			}
			for _, e := range ends[l.line] {
				if l.x < e[1]+space && l.x+w+space > e[0] {
					continue search
				}
			}
			ends[l.line] = append(ends[l.line], [2]float64{l.x, l.x + w})
			placed = append(placed, l)
			lines = max(lines, l.line+1)
			break
		}
	}
	return placed, lines
}
