package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/elector-go/elector/bench/results"
)

// ours is the name of this repository's library in the figures.
const ours = "elector"

// A table is what was measured on one store for one subject.
type table struct {
	subject, store string
	libraries      []string // ours first
	rows           []*row
}

// A row is one case, with a figure for each library that has one.
type row struct {
	subject, store, what, unit string

	count int
	cells map[string]results.Figure // by library
}

// tables sorts the figures of one subject by store, in the order in which they
// come.
func tables(figures []results.Figure, subject string) (all []*table) {
	for _, f := range figures {
		if f.Subject != subject {
			continue
		}
		i := slices.IndexFunc(all, func(t *table) bool { return t.store == f.Store })
		if i < 0 {
			i = len(all)
			all = append(all, &table{subject: subject, store: f.Store})
		}
		all[i].add(f)
	}
	return all
}

// add puts a figure into its row. A new row comes after the last one that the
// library has.
func (t *table) add(f results.Figure) {
	if !slices.Contains(t.libraries, f.Library) {
		at := len(t.libraries)
		if f.Library == ours {
			at = 0
		}
		t.libraries = slices.Insert(t.libraries, at, f.Library)
	}
	last := len(t.rows)
	for i, r := range t.rows {
		if r.what == f.What && r.count == f.Count && r.unit == f.Unit {
			r.cells[f.Library] = f
			return
		}
		if _, ok := r.cells[f.Library]; ok {
			last = i + 1
		}
	}
	t.rows = slices.Insert(t.rows, last, &row{
		subject: f.Subject, store: f.Store, what: f.What, count: f.Count, unit: f.Unit,
		cells: map[string]results.Figure{f.Library: f},
	})
}

// counted is what Count is the number of.
func counted(subject string, n int) string {
	word := "waiter"
	if subject == results.Scale {
		word = "election"
	}
	if n != 1 {
		word += "s"
	}
	return word
}

// A standing is how our library compares in a row.
type standing int

const (
	alone  standing = iota // there is nothing to compare
	level                  // level with the best peer, or ahead
	behind                 // behind it, or not measured where it was
)

// stands compares our library's median with the least of the peers', both as
// they are printed. Less is better in all rows.
func (r *row) stands() (standing, results.Figure) {
	own, is := r.cells[ours]
	if !is || notCompared[place{r.subject, "", r.what}] != "" {
		return alone, results.Figure{}
	}
	var best results.Figure
	for _, name := range slices.Sorted(maps.Keys(r.cells)) { // of equal ones always the same
		f := r.cells[name]
		if name == ours || len(f.Values) == 0 || notTheSame[deed{r.subject, r.what, name}] != "" {
			continue
		}
		if len(best.Values) == 0 || f.Median() < best.Median() {
			best = f
		}
	}
	switch {
	case len(best.Values) == 0:
		return alone, best
	case len(own.Values) == 0 || printed(own) > printed(best):
		return behind, best
	}
	return level, best
}

// printed is the median as it is printed.
func printed(f results.Figure) float64 {
	v, err := strconv.ParseFloat(number(f.Median(), exact(f)), 64)
	if err != nil {
		return f.Median()
	}
	return v
}

// exact says whether all values are the same, and not of a clock.
func exact(f results.Figure) bool {
	switch f.Unit {
	case "ns", "ms", "s", "TTL", "round trips", "times":
		return false
	}
	return f.Least() == f.Most()
}

// cell prints a figure: its median and its range, or the number if it is exact.
func cell(f results.Figure) string {
	if len(f.Values) == 0 {
		return "–"
	}
	// A measurement that was broken off shows at least its value.
	bound := ""
	if strings.HasPrefix(f.Note, "at least") {
		bound = "≥ "
	}
	least, median, most := number(f.Least(), exact(f)), number(f.Median(), exact(f)), number(f.Most(), exact(f))
	switch {
	case least == most:
		return bound + median
	case f.What == takeoverBounds:
		return least + "–" + most
	}
	return fmt.Sprintf("%s (%s–%s%s)", median, least, bound, most)
}

// number prints whole numbers that are exact as they are, and others with three
// digits that count.
func number(v float64, exact bool) string {
	if exact && v == math.Trunc(v) || v == 0 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	scale := math.Pow10(digits)
	v = math.Round(v*scale) / scale
	return strconv.FormatFloat(v, 'f', max(0, min(digits, shortest(v))), 64)
}

// shortest is how many digits behind the point a number needs.
func shortest(v float64) int {
	_, behind, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return len(behind)
}
