package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The layout, in pixels. The letters are large enough to be read when the
// picture is as narrow as a phone.
const (
	width   = 720
	top     = 48 // the title
	heading = 48 // of a panel
	height  = 190
	foot    = 40  // the numbers below a panel
	left    = 84  // the numbers beside it
	right   = 304 // the names of the libraries
	apart   = 21  // between two names
)

// style has colours for a light and a dark page. A picture in a page cannot
// know on which it stands, so it brings its own ground. Colour is never the
// only sign: each line ends at the name of its library, with its mark.
const style = `<style>
text{font:18px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;fill:#1f2328}
.ground{fill:#fff}.grid{stroke:#d0d7de}.quiet{fill:#59636e}.title{font-weight:600}
.lead{stroke-width:1;stroke-dasharray:1 4}
.s0{stroke:#0969da;fill:#0969da}.s1{stroke:#bc4c00;fill:#bc4c00}.s2{stroke:#1a7f37;fill:#1a7f37}.s3{stroke:#8250df;fill:#8250df}
.s4{stroke:#bf3989;fill:#bf3989}.s5{stroke:#9a6700;fill:#9a6700}.s6{stroke:#59636e;fill:#59636e}
.line{fill:none;stroke-width:2}.own{stroke-width:4}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}.ground{fill:#0d1117}.grid{stroke:#30363d}.quiet{fill:#9198a1}
.s0{stroke:#58a6ff;fill:#58a6ff}.s1{stroke:#f0883e;fill:#f0883e}.s2{stroke:#3fb950;fill:#3fb950}.s3{stroke:#bc8cff;fill:#bc8cff}
.s4{stroke:#f778ba;fill:#f778ba}.s5{stroke:#d29922;fill:#d29922}.s6{stroke:#9198a1;fill:#9198a1}
.line{fill:none}}
</style>
`

// draw draws the panels below each other, on the same logarithmic scales.
func draw(title, across string, panels []panel) string {
	var s strings.Builder
	tall := top + len(panels)*(heading+height+foot) + 12
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, tall, width, tall)
	fmt.Fprintf(&s, "<title>%s against %s</title>\n", escaped(title), escaped(across))
	s.WriteString(style)
	fmt.Fprintf(&s, `<rect class="ground" width="%d" height="%d"/>`+"\n", width, tall)
	text(&s, 16, 32, "title", "start", title)
	xs, ys := axes(panels)
	for i, p := range panels {
		p.draw(&s, float64(top+i*(heading+height+foot)+heading), across, xs, ys)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// axes returns the numbers that are marked on the scales. The first and the
// last bound all points.
func axes(panels []panel) (xs, ys []float64) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, l := range p.lines {
			for _, pt := range l.points {
				if !slices.Contains(xs, pt.x) {
					xs = append(xs, pt.x)
				}
				if pt.y > 0 {
					least, most = min(least, pt.y), max(most, pt.y)
				}
			}
		}
	}
	slices.Sort(xs)
	if least > most {
		least, most = 1, 10 // nothing but zeros
	}
	return xs, ticks(least, most)
}

// ticks are the powers of ten around a range, and between them 2 and 5 where
// there are few.
func ticks(least, most float64) (all []float64) {
	const almost = 1e-9
	from, to := math.Floor(math.Log10(least)+almost), math.Ceil(math.Log10(most)-almost)
	if to <= from {
		to = from + 1
	}
	for e := from; e <= to; e++ {
		all = append(all, math.Pow(10, e))
		if to-from < 3 && e < to {
			all = append(all, 2*math.Pow(10, e), 5*math.Pow(10, e))
		}
	}
	for len(all) > 2 && all[1] <= least*(1+almost) {
		all = all[1:]
	}
	for len(all) > 2 && all[len(all)-2] >= most*(1-almost) {
		all = all[:len(all)-1]
	}
	return all
}

// position is where a number stands between the ends of a logarithmic scale,
// from 0 to 1. What has no place there, a zero, stands at the end.
func position(v, least, most float64) float64 {
	if v <= least || most <= least {
		return 0
	}
	return min(1, math.Log(v/least)/math.Log(most/least))
}

func (p panel) draw(s *strings.Builder, y float64, across string, xs, ys []float64) {
	inner := float64(width - left - right)
	atX := func(v float64) float64 { return left + inner*position(v, xs[0], xs[len(xs)-1]) }
	atY := func(v float64) float64 { return y + height - height*position(v, ys[0], ys[len(ys)-1]) }

	missing := ""
	if p.missing != nil {
		missing = `<tspan dx="16" class="quiet" font-weight="400">not measured: ` + escaped(strings.Join(p.missing, ", ")) + `</tspan>`
	}
	fmt.Fprintf(s, `<text x="16" y="%.1f"><tspan font-weight="600">%s</tspan>%s</text>`+"\n", y-22, escaped(p.title), missing)
	for _, v := range ys {
		fmt.Fprintf(s, `<path class="grid" d="M%d %.1fH%.1f"/>`+"\n", left, atY(v), left+inner)
		text(s, left-10, atY(v)+6, "quiet", "end", number(v, true))
	}
	for _, v := range xs {
		fmt.Fprintf(s, `<path class="grid" d="M%.1f %.1fv6"/>`+"\n", atX(v), y+height)
		text(s, atX(v), y+height+25, "quiet", "middle", number(v, true))
	}
	text(s, left+inner+34, y+height+25, "quiet", "start", across)

	ends := make([]float64, len(p.lines))
	for i, l := range p.lines {
		ends[i] = atY(l.points[len(l.points)-1].y)
	}
	names := separate(ends, apart, y, y+height)
	for i := len(p.lines) - 1; i >= 0; i-- { // ours is the first, and drawn on top
		l := p.lines[i]
		class := fmt.Sprintf("s%d", l.sign%7)
		own, weight := "", "400"
		if l.library == ours {
			own, weight = " own", "600"
		}
		var path strings.Builder
		for j, pt := range l.points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(j, 1)], atX(pt.x), atY(pt.y))
		}
		fmt.Fprintf(s, `<path class="%s line%s" d="%s"/>`+"\n", class, own, path.String())
		for _, pt := range l.points {
			mark(s, class, l.sign, atX(pt.x), atY(pt.y))
		}
		last := l.points[len(l.points)-1]
		label := left + inner + 34
		fmt.Fprintf(s, `<path class="%s line lead" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", class, atX(last.x)+6, atY(last.y), label-10, names[i])
		mark(s, class, l.sign, label, names[i])
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" style="font-weight:%s">%s</text>`+"\n", label+12, names[i]+6, weight, escaped(l.library))
	}
}

// mark draws the i-th sign.
func mark(s *strings.Builder, class string, i int, x, y float64) {
	shapes := []string{
		"M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0z", // circle
		"M-5-5h10v10h-10z",                     // square
		"M0-7L6 5H-6z",                         // triangle
		"M0-7L7 0L0 7L-7 0z",                   // diamond
		"M0 7L6-5H-6z",                         // triangle on its head
		"M-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z",    // cross
		"M-7-2h14v4h-14z",                      // bar
	}
	fmt.Fprintf(s, `<path class="%s" transform="translate(%.1f %.1f)" d="%s"/>`+"\n", class, x, y, shapes[i%len(shapes)])
}

func text(s *strings.Builder, x, y float64, class, anchor, content string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, escaped(content))
}

// separate moves positions away from each other, as little as it takes, in the
// same order and within bounds. Equal ones stay in their order.
func separate(at []float64, apart, from, to float64) []float64 {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case at[a] < at[b]:
			return -1
		case at[a] > at[b]:
			return 1
		}
		return 0
	})
	moved := slices.Clone(at)
	last := math.Inf(-1)
	for _, i := range order {
		moved[i] = max(moved[i], last+apart, from)
		last = moved[i]
	}
	next := to
	for _, i := range slices.Backward(order) {
		moved[i] = min(moved[i], next)
		next = moved[i] - apart
	}
	return moved
}

func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
