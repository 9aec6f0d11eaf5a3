package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/results"
)

// plausible makes figures as measurements may give them. They are made up.
func plausible() (all []results.Figure) {
	on := map[string][]string{
		"etcd":      {"elector", "etcd", "client-go", "client-go/release", "client-go/timeout", "client-go/timeout+release"},
		"zookeeper": {"elector", "zk-lock", "zk-lock/careful"},
		"postgres":  {"elector", "pglock", "pglock/pgx"},
		"dynamodb":  {"elector", "dynamolock"},
	}
	spread := func(v float64, n int) (values []float64) {
		for i := range n {
			values = append(values, v*(1+0.3*math.Sin(float64(i)*1.7+v)))
		}
		return values
	}
	for _, store := range []string{"etcd", "zookeeper", "postgres", "dynamodb"} {
		for i, library := range on[store] {
			add := func(subject, what string, count int, unit, note string, values ...float64) {
				all = append(all, results.Figure{Subject: subject, Store: store, Library: library, What: what, Count: count, Unit: unit, Values: values, Note: note})
			}
			polls := store == "dynamodb" || store == "etcd" && i > 1 || store == "postgres" && i > 0
			add(results.Cost, "uncontended acquire", 0, "requests", "", float64(2+i))
			if i < 3 {
				add(results.Cost, "resign", 0, "requests", "", float64((i+1)%3))
			}
			add(results.Cost, "uncontended acquire", 0, "bytes", "both directions together", float64(812+i*355))
			for _, n := range []int{1, 10, 50} {
				requests := float64(3 + 2*n)
				if i > 0 {
					requests = float64(5+i) + float64(n)*float64(i)
				}
				add(results.Cost, "handover", n, "requests", "", spread(requests, 5)...)
				took := 4 + float64(n)*0.4 + float64(i)
				if polls {
					took = 300 * float64(i+1)
				}
				if strings.HasPrefix(library, "client-go") && !strings.Contains(library, "release") {
					add(results.Handover, "from resign to the successor knowing", n, "ms", "without ReleaseOnCancel nothing is released")
					continue
				}
				note := fmt.Sprintf("20 rounds; one round trip took %.2f ms; the release is pushed", 0.4+float64(n)/100)
				add(results.Handover, "from resign to the successor knowing", n, "ms", note, spread(took, 20)...)
				add(results.Handover, "from resign to the successor knowing", n, "round trips", note, spread(took/0.4, 20)...)
			}
			add(results.Takeover, "takeover after kill -9", 1, "TTL", "", spread(1, 5)...)
			add(results.Takeover, takeoverBounds, 1, "TTL", "by its rules", 0.8, 1.2)
			overlap, note := 0.0, ""
			if i > 0 {
				overlap = 4 * float64(i)
			}
			if library == "zk-lock" {
				note = "at least: the old leader still believed when a round was over"
			}
			add(results.Overlap, "cut: both believe that they lead", 0, "s", note, overlap, overlap*1.5, overlap*1.1)
			add(results.Overlap, "cut: from the cut until the old leader no longer believes", 0, "s", note, 2.2+overlap, 2.4, 2.3)
			for _, n := range []int{1, 100, 1000, 10000} {
				if store != "dynamodb" {
					add(results.Scale, "requests to hold all of them", n, "requests per second", "", 0.2+float64(n*i)*0.5)
					add(results.Scale, "memory per further election", n, "KB", "", (14+float64(i)*20)+200/float64(n))
					add(results.Scale, "goroutines per further election", n, "goroutines", "", 2+float64(i)+3/float64(n))
				}
			}
			add(results.Check, "one call", 0, "ns", "2.1 ns of it are the measurement's own", spread(60/float64(1+4*i), 51)...)
			add(results.Check, "allocations of one call", 0, "allocations", "", 0)
		}
	}
	return all
}

func about() About {
	a := Here()
	a.Date = time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)
	a.TTL = 3 * time.Second
	a.Systems = []System{{Kind: "etcd", Name: "etcd 3.7.3", Settings: "synced"}, {Kind: "postgres", Name: "PostgreSQL 18.1"}, {Kind: "dynamodb", Name: "dynalite 4", Settings: "an emulator"}}
	a.Libraries = []Library{{"elector", "github.com/elector-go/elector", "as in this tree", "Lease.Check returns nil", "defaults"}}
	return a
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v     float64
		exact bool
		want  string
	}{
		{0, true, "0"}, {0, false, "0"}, {2, true, "2"}, {12345, true, "12345"}, {12345, false, "12300"},
		{0.5, true, "0.5"}, {1.23456, false, "1.23"}, {12.3456, false, "12.3"}, {123.456, false, "123"}, {99.96, false, "100"},
		{0.0012345, false, "0.00123"}, {2.5, true, "2.5"}, {1.0, false, "1"}, {999.6, false, "1000"}, {10, false, "10"}, {1e7 + 1, false, "10000000"},
	} {
		if got := number(c.v, c.exact); got != c.want {
			t.Errorf("%v, exact %v: %s; want %s", c.v, c.exact, got, c.want)
		}
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		f    results.Figure
		want string
	}{
		{results.Figure{}, "–"},
		{results.Figure{Values: []float64{7}}, "7"},
		{results.Figure{Values: []float64{1312, 1312}}, "1312"},
		{results.Figure{Values: []float64{1498936962}, Unit: "ns"}, "1500000000"},
		{results.Figure{Values: []float64{3, 1, 2}}, "2 (1–3)"},
		{results.Figure{Values: []float64{1.0001, 1.0002}}, "1"},
		{results.Figure{Values: []float64{12, 10, 9}, Note: "at least: x"}, "10 (9–≥ 12)"},
		{results.Figure{Values: []float64{12}, Note: "at least: x"}, "≥ 12"},
		{results.Figure{Values: []float64{0.8, 1.2}, What: takeoverBounds}, "0.8–1.2"},
	} {
		if got := cell(c.f); got != c.want {
			t.Errorf("%v: %q; want %q", c.f, got, c.want)
		}
	}
}

func rowOf(subject, what string, values map[string][]float64) *row {
	r := &row{subject: subject, store: "etcd", what: what, cells: map[string]results.Figure{}}
	for l, v := range values {
		r.cells[l] = results.Figure{Library: l, Values: v}
	}
	return r
}

func TestStandings(t *testing.T) {
	for _, c := range []struct {
		name  string
		cells map[string][]float64
		want  standing
		best  string
	}{
		{"ahead of all", map[string][]float64{ours: {1, 2, 3}, "a": {4}, "b": {3}}, level, "b"},
		{"level", map[string][]float64{ours: {3}, "a": {3}}, level, "a"},
		{"ahead of one, behind another", map[string][]float64{ours: {3}, "a": {4}, "b": {2}}, behind, "b"},
		{"the median counts", map[string][]float64{ours: {1, 1, 9}, "a": {2}}, level, "a"},
		{"level as printed", map[string][]float64{ours: {1.001, 1.002}, "a": {1}}, level, "a"},
		{"exact numbers are not rounded", map[string][]float64{ours: {1001}, "a": {1000}}, behind, "a"},
		{"no peer was measured", map[string][]float64{ours: {1}, "a": nil}, alone, ""},
		{"ours was not measured", map[string][]float64{ours: nil, "a": {1}}, behind, "a"},
		{"ours does not apply", map[string][]float64{"a": {1}, "b": {2}}, alone, ""},
		{"a peer was not measured", map[string][]float64{ours: {2}, "a": nil, "b": {1}}, behind, "b"},
	} {
		got, best := rowOf(results.Cost, "x", c.cells).stands()
		if got != c.want || best.Library != c.best {
			t.Errorf("%s: %v, best %q; want %v, %q", c.name, got, best.Library, c.want, c.best)
		}
	}
	for d := range notTheSame {
		r := rowOf(d.subject, d.what, map[string][]float64{ours: {3}, d.library: {1}, "other": {4}})
		if got, best := r.stands(); got != level || best.Library != "other" {
			t.Errorf("%v is compared: %v, best %q", d, got, best.Library)
		}
	}
	for p := range notCompared {
		if got, _ := rowOf(p.subject, p.what, map[string][]float64{ours: {3}, "a": {1}}).stands(); got != alone {
			t.Errorf("%v is compared", p)
		}
	}
}

// A row that only a peer has comes after the row that the peer has before it.
func TestOrderOfRows(t *testing.T) {
	var figures []results.Figure
	for _, lw := range []string{"peer first", "elector first", "elector last", "peer only", "peer last"} {
		l, what, _ := strings.Cut(lw, " ")
		figures = append(figures, results.Figure{Subject: results.Cost, Store: "etcd", Library: l, What: what, Values: []float64{1}})
	}
	table := tables(figures, results.Cost)[0]
	var order []string
	for _, r := range table.rows {
		order = append(order, r.what)
	}
	if !slices.Equal(order, []string{"first", "only", "last"}) || !slices.Equal(table.libraries, []string{"elector", "peer"}) {
		t.Errorf("rows %v, libraries %v", order, table.libraries)
	}
}

// explain replaces the reasons for a test.
func explain(t *testing.T, why map[place]string) {
	written := reasons
	reasons = why
	t.Cleanup(func() { reasons = written })
}

func TestPage(t *testing.T) {
	explain(t, map[place]string{{results.Check, "etcd", "one call"}: "It reads the clock."})
	var b strings.Builder
	if err := Page(&b, plausible(), about()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"make bench-peers", "## The machine", "River (`github.com/riverqueue/river`", "21 November 2026", "| etcd | etcd 3.7.3: synced |", "| PostgreSQL | PostgreSQL 18.1 |", "### etcd 3.7.3", "### ZooKeeper\n", "### DynamoDB (dynalite 4)\n",
		"![From a release", "(plots/handover.svg)", "| | elector | etcd | client-go |",
		"| uncontended acquire: requests | 2 | 3 | 4 |",
		"- It reads the clock.\n  - one call: ",            // a reason
		"- **Behind, not explained yet.**\n  - one call: ", // and none, on another store
		"  - handover: 10 waiters: 20.1 requests, etcd has 14.6; 50 waiters: 108 requests, etcd has 55.5\n",
		"<sup>1</sup> not compared: it is too late only after the successor",
		"| – <sup>", "without ReleaseOnCancel nothing is released",
		"≥ ", "0.8–1.2",
		"| resign: requests | 1 | 2 | 0 <sup>1</sup> |", "<sup>1</sup> not compared: it tells the store nothing",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	host, _ := os.Hostname()
	folder, _ := os.Getwd()
	for _, no := range []string{folder, "NaN", "Inf", "%!"} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %q", no)
		}
	}
	for _, word := range strings.Fields(page) {
		if host != "" && word == host {
			t.Errorf("the page names the machine %q", host)
		}
	}
	// All lines of a table have as many cells as its head.
	cells := 0
	for n, line := range strings.Split(page, "\n") {
		switch {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = strings.Count(line, "|")
		case strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != cells:
			t.Errorf("line %d has %d bars and not %d: %s", n+1, strings.Count(line, "|"), cells, line)
		}
	}
	if short := about(); true {
		short.Short, short.Apart = true, true
		var b strings.Builder
		if err := Page(&b, plausible(), short); err != nil || !strings.Contains(b.String(), "This is a short run") || !strings.Contains(b.String(), "in runs of their own") {
			t.Errorf("a short run is not said to be one, error %v", err)
		}
	}
}

// What is behind without a reason is in the summary too.
func TestSummary(t *testing.T) {
	explain(t, nil)
	f := func(l string, v float64) results.Figure {
		return results.Figure{Subject: results.Cost, Store: "etcd", Library: l, What: "resign", Unit: "requests", Values: []float64{v}}
	}
	for _, c := range []struct {
		ours float64
		want string
	}{
		{1, "Of 1 rows in which `elector` can be compared, it is level with the best peer or ahead in 1 and behind in 0."},
		{1, "\n| Requests and bytes on the wire | requests | 1 | 0 |\n"},
		{3, "ahead in 0 and behind in 1, of which **1 are not explained yet**."},
		{3, "\n| Requests and bytes on the wire | requests | 0 | 1 |\n"},
	} {
		p := &page{figures: []results.Figure{f("elector", c.ours), f("peer", 2)}}
		p.standings()
		if !strings.Contains(p.String(), c.want) {
			t.Errorf("%q lacks %q", p.String(), c.want)
		}
	}
}

func TestNotesOfARow(t *testing.T) {
	r := rowOf(results.Cost, "x", map[string][]float64{"a": {1}, "b": {1}, "c": nil})
	set := func(l, note string) { f := r.cells[l]; f.Note = note; r.cells[l] = f }
	set("a", "both")
	set("b", "both")
	set("c", "why not")
	if r.note() != "both" {
		t.Errorf("common note %q", r.note())
	}
	set("b", "other")
	if r.note() != "" {
		t.Errorf("common note %q of two", r.note())
	}
}

func TestComplete(t *testing.T) {
	figures := plausible()
	all := []string{"etcd", "zookeeper", "postgres", "dynamodb"}
	if err := Complete(figures, []string{results.Cost, results.Check}, all); err != nil {
		t.Error(err)
	}
	if err := Complete(figures, []string{results.Cost, results.Scale}, all); err == nil || !strings.HasSuffix(err.Error(), ": scale on dynamodb") {
		t.Errorf("error %v; want one that names what is missing", err)
	}
	for i := range figures {
		if figures[i].Subject == results.Cost && figures[i].Store == "etcd" && figures[i].Library == ours {
			figures[i].Values = nil
		}
	}
	if err := Complete(figures, []string{results.Cost}, all); err == nil {
		t.Error("figures of peers alone are said to be complete")
	}
}

func TestErrorsOfThePage(t *testing.T) {
	if err := Page(io.Discard, nil, about()); err == nil {
		t.Error("a page without figures")
	}
	full := errors.New("disk full")
	if err := Page(broken{full}, plausible(), about()); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	renamed := []results.Figure{{Subject: results.Handover, Store: "etcd", Library: ours, What: "else", Count: 1, Unit: "ms", Values: []float64{1}}}
	if _, err := Plots(renamed); err == nil || !strings.Contains(err.Error(), "from resign") {
		t.Errorf("error %v; want that the plot finds nothing", err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestMachine(t *testing.T) {
	if got := field("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name : x\n", "model name"); got != "AMD EPYC" {
		t.Error(got)
	}
	if got := kilobytes("2048 kB"); got != 2<<20 {
		t.Error(got)
	}
	if got := release("linux", "6.1.0-13-amd64 (somebody@somewhere)\n"); got != "Linux 6.1.0" {
		t.Error(got)
	}
}

func TestPlots(t *testing.T) {
	plots, err := Plots(plausible())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range plots {
		names = append(names, p.Name)
		for d := xml.NewDecoder(strings.NewReader(p.SVG)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s is not XML: %v", p.Name, err)
			}
		}
		for _, no := range []string{"NaN", "Inf", "%!", "href", "url("} {
			if strings.Contains(p.SVG, no) {
				t.Errorf("%s has %q", p.Name, no)
			}
		}
		if !strings.Contains(p.SVG, ">elector<") || !strings.Contains(p.SVG, "prefers-color-scheme:dark") || !strings.Contains(p.Alt, "etcd") {
			t.Errorf("%s lacks a name, a colour or a text", p.Name)
		}
	}
	if !slices.Equal(names, []string{"handover-requests", "handover", "holding", "memory", "goroutines"}) {
		t.Errorf("plots %v", names)
	}
	if !strings.Contains(plots[1].SVG, "not measured: client-go, client-go/timeout<") {
		t.Error("the plot does not say what is not in it")
	}
	for i, want := range []string{">Requests of a handover<", ">From a release to the successor, ms<"} {
		if !strings.Contains(plots[i].SVG, want) {
			t.Errorf("%s lacks %s", plots[i].Name, want)
		}
	}
	// A library has the same sign everywhere, whatever else is there.
	all := plausible()
	for _, subset := range [][]results.Figure{all, all[:len(all)/2]} {
		if got := sign(subset, "etcd", "client-go/release"); got != 3 {
			t.Errorf("the sign is %d; want 3", got)
		}
	}
	// For a look at them: REPORT_TEST_OUT=folder go test -run TestPlots
	if folder := os.Getenv("REPORT_TEST_OUT"); folder != "" {
		for _, p := range plots {
			if err := os.WriteFile(filepath.Join(folder, p.Name+".svg"), []byte(p.SVG), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var b strings.Builder
		if err := errors.Join(Page(&b, plausible(), about()), os.WriteFile(filepath.Join(folder, "RESULTS.md"), []byte(b.String()), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		least, most float64
		want        []float64
	}{
		{3, 7000, []float64{1, 10, 100, 1000, 10000}},
		{12, 180, []float64{10, 20, 50, 100, 200}},
		{20, 90, []float64{20, 50, 100}},
		{5, 5, []float64{5, 10}},
		{1, 1, []float64{1, 2}},
		{10, 100, []float64{10, 20, 50, 100}},
	} {
		got := ticks(c.least, c.most)
		same := len(got) == len(c.want)
		for i := range got {
			same = same && math.Abs(got[i]/c.want[i]-1) < 1e-9
		}
		if !same || got[0] > c.least*1.0001 || got[len(got)-1] < c.most*0.9999 {
			t.Errorf("%v to %v: %v; want %v", c.least, c.most, got, c.want)
		}
	}
}

func TestSeparate(t *testing.T) {
	for _, c := range []struct{ at, want []float64 }{
		{[]float64{10, 60}, []float64{10, 60}},
		{[]float64{50, 50, 50}, []float64{50, 60, 70}},
		{[]float64{95, 98, 20}, []float64{90, 100, 20}},
		{[]float64{-5, 120}, []float64{0, 100}},
	} {
		if got := separate(c.at, 10, 0, 100); !slices.Equal(got, c.want) {
			t.Errorf("%v becomes %v; want %v", c.at, got, c.want)
		}
	}
}
