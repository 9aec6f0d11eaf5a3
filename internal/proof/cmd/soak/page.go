package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/proof/chaos/ledger"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// A row is the sum of all campaigns of a commit.
type row struct {
	Commit string
	ledger.Sum
}

// writePage writes the report as one HTML page that needs nothing else.
func writePage(out io.Writer, all []ledger.Entry, unread, goal int) error {
	var rows []row
	var failed []ledger.Entry
	for i, e := range all {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.Commit == e.Commit }) {
			rows = append(rows, row{e.Commit, ledger.Total(slices.DeleteFunc(slices.Clone(all[i:]), func(o ledger.Entry) bool { return o.Commit != e.Commit }))})
		}
		if !e.Passed() {
			failed = append(failed, e)
		}
	}
	slices.Reverse(rows)
	slices.Reverse(failed)
	total := ledger.Total(all)
	return page.Execute(out, map[string]any{
		"Good": total.Overlaps+total.Stale+total.Violations == 0 && total.Campaigns > 0, "Summary": summary(all, goal), "Total": total, "Unread": unread,
		"Picture": picture(all), "Rows": rows, "Failed": failed[:min(len(failed), mostListed)], "More": max(0, len(failed)-mostListed),
	})
}

const (
	mostListed  = 200
	mostColumns = 240 // of the picture; more campaigns share columns
	width       = 960
	height      = 160
)

// picture draws the faults of each campaign as a column, and what it found as a red one.
func picture(all []ledger.Entry) template.HTML {
	if len(all) == 0 {
		return ""
	}
	each := (len(all) + mostColumns - 1) / mostColumns
	groups := slices.Collect(slices.Chunk(all, each))
	highest := 1
	for _, g := range groups {
		highest = max(highest, ledger.Total(g).Faults)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="faults and violations of each campaign">`, width, height+20)
	column := min(float64(width)/float64(len(groups)), 24)
	for i, g := range groups {
		t := ledger.Total(g)
		class, tall := "faults", float64(t.Faults)/float64(highest)*height
		switch {
		case slices.ContainsFunc(g, ledger.Entry.Bad):
			class = "bad"
		case t.Failed > 0:
			class = "failed"
		}
		tall = max(tall, 2) // one without a fault is seen too
		seeds := fmt.Sprintf("seed %d", g[0].Seed)
		if len(g) > 1 {
			seeds = fmt.Sprintf("seeds %d to %d", g[0].Seed, g[len(g)-1].Seed)
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.2f" y="%.1f" width="%.2f" height="%.1f"><title>%s: %d faults, %d violations, %d did not pass</title></rect>`,
			class, float64(i)*column, height-tall, column*.85, tall, seeds, t.Faults, t.Violations, t.Failed)
		if found := max(t.Violations, t.Overlaps+t.Stale); found > 0 { // the checker finds most overlaps too
			fmt.Fprintf(&b, `<text class="bad" text-anchor="middle" x="%.2f" y="%d">%d</text>`, (float64(i)+.425)*column, height+15, found)
		}
	}
	fmt.Fprintf(&b, `<path class="line" d="M0 %d.5H%d"/></svg>`, height, width)
	return template.HTML(b.String())
}
