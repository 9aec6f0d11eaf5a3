// Package report writes the page and the plots of a comparison from its figures.
package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/bench/results"
)

// ShortRun is on the page of a short run, and on no other.
const ShortRun = "This is a short run"

// partitions is the chapter about groups, from the output of make bench-partitions.
//
//go:embed partitions.md
var partitions string

// groups is the section of that chapter that cmd/groups writes: see [Groups].
//
//go:embed groups.md
var groups string

// A chapter is a subject of the page.
type chapter struct {
	subject, title, text string
}

var chapters = []chapter{
	{results.Cost, "Requests and bytes on the wire",
		"Counted by a proxy between each candidate and the store, both directions, without the headers of TCP and IP."},
	{results.Handover, "From a release to the successor",
		"The time from the call that resigns until the successor's campaign has returned, also as a multiple of one round trip to the same store, measured beside it."},
	{results.Takeover, "From a crash to the successor",
		"The leader's process is killed (`kill -9`); the time until the successor's campaign has returned, as a multiple of the TTL."},
	{results.Overlap, "Two who believe that they lead",
		"The leader's network goes dark, and a successor is elected. Both processes ask their library every 5 ms whether they lead. Of a peer only what is sure counts, of ours all that may be. See [README.md](README.md)."},
	{results.Scale, "Many elections in one process",
		"All of them are held by one process on one store, with a TTL of 15 s (3 s in a short run). Each number of elections is a process of its own. Memory is heap and stacks: with one election what the process has more than before it opened the store, most of which is the client's, and otherwise what each further election takes. A user of `elector` has one goroutine for each election, which is in Run while it leads and while it waits: its stack is in the memory of both. Waiting takes more memory: a campaign and its watch are a goroutine each, and on etcd the client has a third."},
	{results.Check, "Asking before a side effect",
		"What a question whether one still leads costs, in the way that each library's documentation tells users to ask (go-zookeeper's Lock has none: a flag that session events set stands in), while the store answers and while it hangs with a renewal under way. Calls are timed in turn, all libraries in each round."},
}

// titles are how stores are called in headings.
var titles = map[string]string{"etcd": "etcd", "zookeeper": "ZooKeeper", "postgres": "PostgreSQL", "dynamodb": "DynamoDB", "gcs": "Google Cloud Storage", "kubernetes": "Kubernetes", "redis": "Redis", "nats": "NATS"}

// Page writes the page, in Markdown. It refers to the plots that [Plots]
// returns, in the folder plots beside it.
func Page(w io.Writer, figures []results.Figure, about About) error {
	return PageWith(w, figures, about, groups)
}

// PageWith is Page with another section about groups.
func PageWith(w io.Writer, figures []results.Figure, about About, groups string) error {
	if len(figures) == 0 {
		return errors.New("there are no figures for the page")
	}
	plots, err := Plots(figures)
	if err != nil {
		return err
	}
	p := &page{figures: figures, about: about, plots: plots}
	p.head()
	for _, c := range chapters {
		p.chapter(c)
	}
	if !about.Short {
		p.printf("%s", partitions)
		if groups != "" {
			p.printf("\n%s", groups)
		}
	}
	_, err = w.Write(p.Bytes())
	return err
}

// Complete returns an error that names every subject and store for which our
// library has no value.
func Complete(figures []results.Figure, subjects, stores []string) error {
	var missing []string
	for _, subject := range subjects {
		for _, store := range stores {
			if !slices.ContainsFunc(figures, func(f results.Figure) bool {
				return f.Subject == subject && f.Store == store && f.Library == ours && len(f.Values) > 0
			}) {
				missing = append(missing, subject+" on "+store)
			}
		}
	}
	if missing != nil {
		return fmt.Errorf("tables without a figure of this library: %s", strings.Join(missing, ", "))
	}
	return nil
}

type page struct {
	bytes.Buffer
	figures []results.Figure
	about   About
	plots   []Plot
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) head() {
	a := p.about
	p.printf("# Side by side: what an election costs, here and elsewhere\n\n")
	p.printf("`%s` is this repository's library. Each of the others runs on the same store, started for the measurement, with the same TTL of %s unless the text says otherwise: real servers, and for DynamoDB the emulator dynalite.\n", ours, ttl(a.TTL))
	p.printf("%s\n\n", p.durability())
	p.printf("This page is written by a program from what was measured. Nothing in it is estimated; the rows \"what its rules allow\" are read from the libraries' sources. To measure again, on a clone, which needs Go, Java and Node and gets the stores itself:\n\n")
	p.printf("```\nmake bench-peers            # all of it: under an hour on two cores\nmake bench-peers SHORT=1    # fewest rounds, as in CI; prints where it writes\n```\n\n")
	if a.Short {
		p.printf("**%s**: all rows, but so few rounds that the times say little.\n\n", ShortRun)
	}
	p.standings()
	p.printf("## How to read it\n\n")
	p.printf("- A cell is the median and in brackets the least and the most, or one number where it is exact or all were the same. Less is better.\n")
	p.printf("- **Bold** is a figure of `%s` that is behind the best peer in its row, as printed. The reason is below the table.\n", ours)
	p.printf("- – was not measured, ≥ was broken off at the end of the observation: the notes below the table say why. An empty cell does not apply, or was not tried: peers have up to 1,000 elections here, and an emulator up to 100.\n")
	if !a.Short {
		p.printf("- There were five rounds of what a request costs and four windows of a TTL, 20 releases (5 where waiters poll), five kills, three cuts, and one run with many elections. Variants of a library that send the same were measured once.\n")
	}
	p.printf("- `%s` renews every 0.3 TTL. A leader stops at 0.9 TTL after its last renewal was sent; a successor begins at C, 1.1 TTL after it saw that one first. The difference is ClockDrift. J is for how long a waiter waits at random after a release, before it tries.\n", ours)
	p.printf("- Times are of a machine that does other things too. Counts are exact, and ratios of what was measured in turn hold elsewhere; absolute times do not, and multiples of a round trip only where nothing waits by a clock: not with J, and not for who polls.\n\n")
	p.machine()
	p.libraries()
}

// durability says whether the servers synced what they acknowledged.
func (p *page) durability() string {
	for _, s := range p.about.Systems {
		if s.Settings == "" {
			return "How the stores were set was not noted: they may not have synced to the disk what they acknowledged."
		}
	}
	return "The servers sync each change to the disk before they acknowledge it, and have their default heartbeats and ticks: see [The machine](#the-machine)."
}

func ttl(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

// standings counts the rows in which ours can be compared, of each chapter and
// unit.
func (p *page) standings() {
	type group struct {
		title, unit string
		ahead, back int
	}
	var groups []*group
	var all group
	unexplained := 0
	for _, c := range chapters {
		for _, t := range tables(p.figures, c.subject) {
			for _, r := range t.rows {
				s, _ := r.stands()
				if s == alone {
					continue
				}
				i := slices.IndexFunc(groups, func(g *group) bool { return g.title == c.title && g.unit == r.unit })
				if i < 0 {
					i = len(groups)
					groups = append(groups, &group{title: c.title, unit: r.unit})
				}
				if s == level {
					all.ahead++
					groups[i].ahead++
					continue
				}
				all.back++
				groups[i].back++
				if reason(r) == "" {
					unexplained++
				}
			}
		}
	}
	p.printf("Of %d rows in which `%s` can be compared, it is level with the best peer or ahead in %d and behind in %d", all.ahead+all.back, ours, all.ahead, all.back)
	if unexplained > 0 {
		p.printf(", of which **%d are not explained yet**", unexplained)
	}
	p.printf(".\n\n| | unit | level or ahead | behind |\n|---|---|--:|--:|\n")
	for _, g := range groups {
		p.printf("| %s | %s | %d | %d |\n", g.title, g.unit, g.ahead, g.back)
	}
	p.printf("\n")
}

func (p *page) machine() {
	a := p.about
	p.printf("## The machine\n\n| | |\n|---|---|\n")
	for _, line := range [][2]string{
		{"processor", fmt.Sprintf("%s, %d cores", a.CPU, a.Cores)},
		{"memory", fmt.Sprintf("%.1f GiB", float64(a.Memory)/(1<<30))},
		{"kernel", a.Kernel},
		{"Go", a.Go},
		{"date", a.Day()},
	} {
		p.printf("| %s | %s |\n", line[0], escape(line[1]))
	}
	for _, s := range a.Systems {
		how := s.Name
		if s.Settings != "" {
			how += ": " + s.Settings
		}
		if s.On != "" {
			how += "; measured on " + s.On
		}
		p.printf("| %s | %s |\n", title(s.Kind), escape(how))
	}
	if a.Apart {
		p.printf("\nSubjects were measured in runs of their own; the date is that of the last one.\n")
	}
	p.printf("\n")
}

// notAmongThem says which library a reader may look for in vain.
const notAmongThem = "River (`github.com/riverqueue/river` v0.51.0) is not among them: its elector is in an internal package, nothing public says whether a client leads, and its TTL of 15 s cannot be set. See [README.md](README.md)."

// aloneOnNATS says why one store has no other library.
const aloneOnNATS = "On NATS `elector` is alone: no election library for NATS could be had as a module. `github.com/nats-io/jsm.go` had an experimental one, by a consumer of which a stream allows one; v0.5.1 has none."

func (p *page) libraries() {
	if len(p.about.Libraries) == 0 {
		return
	}
	p.printf("## The libraries\n\n| | module | believes while | settings |\n|---|---|---|---|\n")
	for _, l := range p.about.Libraries {
		p.printf("| %s | %s %s | %s | %s |\n", escape(l.Name), escape(l.Module), escape(l.Version), escape(l.Belief), escape(l.Settings))
	}
	p.printf("\n%s\n\n%s\n\n", notAmongThem, aloneOnNATS)
}

func (p *page) chapter(c chapter) {
	all := tables(p.figures, c.subject)
	if len(all) == 0 {
		return
	}
	p.printf("## %s\n\n%s\n\n", c.title, c.text)
	for _, plot := range p.plots {
		if plot.Subject == c.subject {
			p.printf("![%s](plots/%s.svg)\n\n", plot.Alt, plot.Name)
		}
	}
	for _, t := range all {
		p.table(t)
	}
}

func (p *page) table(t *table) {
	p.printf("### %s\n\n", p.heading(t.store))
	p.printf("| |")
	for _, l := range t.libraries {
		p.printf(" %s |", escape(l))
	}
	p.printf("\n|---|%s\n", strings.Repeat("--:|", len(t.libraries)))
	notes := &notes{}
	for _, r := range t.rows {
		stands, _ := r.stands()
		common := r.note()
		mark := common
		if why := notCompared[place{r.subject, "", r.what}]; why != "" {
			mark = strings.TrimPrefix(common+"; not compared: "+why, "; ")
		}
		p.printf("| %s%s |", escape(r.heading()), notes.mark(mark))
		for _, l := range t.libraries {
			f, ok := r.cells[l]
			if !ok {
				p.printf(" |")
				continue
			}
			text := cell(f)
			if l == ours && stands == behind {
				text = "**" + text + "**"
			}
			note := f.Note
			if note == common {
				note = ""
			}
			if less := notTheSame[deed{r.subject, r.what, l}]; less != "" {
				note = strings.TrimPrefix(note+"; not compared: "+less, "; ")
			}
			p.printf(" %s%s |", text, notes.mark(note))
		}
		p.printf("\n")
	}
	p.printf("\n")
	p.behind(t)
	for i, note := range notes.all {
		p.printf("<sup>%d</sup> %s%s\n", i+1, escape(note), lineBreak(i, len(notes.all)))
	}
	if notes.all != nil {
		p.printf("\n")
	}
}

// heading names the row with its unit.
func (r *row) heading() string {
	what := r.what
	if n := strings.TrimSuffix(r.number(), ": "); n != "" {
		what += ", " + n
	}
	return what + ": " + r.unit
}

// note is the note that all of several cells have that were measured.
func (r *row) note() (common string) {
	n := 0
	for _, f := range r.cells {
		switch {
		case len(f.Values) == 0:
		case n > 0 && f.Note != common:
			return ""
		default:
			n++
			common = f.Note
		}
	}
	if n < 2 {
		return ""
	}
	return common
}

// behind lists the cases in which ours is behind, under the reason that they
// have.
func (p *page) behind(t *table) {
	var cases, reasons []string // in their order
	rows, why := map[string][]string{}, map[string]string{}
	for _, r := range t.rows {
		stands, best := r.stands()
		if stands != behind {
			continue
		}
		own := "not measured"
		if f := r.cells[ours]; len(f.Values) > 0 {
			own = cellMedian(f)
		}
		if rows[r.what] == nil {
			cases = append(cases, r.what)
		}
		rows[r.what] = append(rows[r.what], fmt.Sprintf("%s%s, %s has %s", r.number(), strings.TrimSpace(own+" "+r.unit), escape(best.Library), cellMedian(best)))
		if why[r.what] = reason(r); why[r.what] == "" {
			why[r.what] = "**Behind, not explained yet.**"
		}
		if !slices.Contains(reasons, why[r.what]) {
			reasons = append(reasons, why[r.what])
		}
	}
	if cases == nil {
		return
	}
	p.printf("Behind:\n\n")
	for _, reason := range reasons {
		p.printf("- %s\n", reason)
		for _, c := range cases {
			if why[c] == reason {
				p.printf("  - %s: %s\n", escape(c), strings.Join(rows[c], "; "))
			}
		}
	}
	p.printf("\n")
}

// number says how many waiters or elections the row is about, if any.
func (r *row) number() string {
	if r.count == 0 || r.subject == results.Takeover { // there it is always one
		return ""
	}
	return fmt.Sprintf("%d %s: ", r.count, counted(r.subject, r.count))
}

func cellMedian(f results.Figure) string { return number(f.Median(), exact(f)) }

func (p *page) heading(store string) string {
	for _, s := range p.about.Systems {
		switch {
		case s.Kind != store:
		case strings.HasPrefix(s.Name, title(store)):
			return s.Name
		default: // a program that plays it
			return fmt.Sprintf("%s (%s)", title(store), s.Name)
		}
	}
	return title(store)
}

func title(store string) string {
	if t := titles[store]; t != "" {
		return t
	}
	return store
}

// notes are those of one table, each once.
type notes struct{ all []string }

func (n *notes) mark(note string) string {
	if note == "" {
		return ""
	}
	i := slices.Index(n.all, note)
	if i < 0 {
		i = len(n.all)
		n.all = append(n.all, note)
	}
	return fmt.Sprintf(" <sup>%d</sup>", i+1)
}

// lineBreak ends a line of several.
func lineBreak(i, of int) string {
	if i < of-1 {
		return "<br>"
	}
	return ""
}

// escape keeps text from ending a cell or beginning an element.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
