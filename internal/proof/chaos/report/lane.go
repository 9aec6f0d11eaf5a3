package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// lane draws one candidate: a thin line while it waits, a high bar while it
// leads, hatched while it is stopped, with a dotted band below while it is
// broken; and marks for what happened to it.
func (r *row) lane(l *life) {
	var names []label
	for _, f := range r.s.faults {
		if f.candidate == l.candidate && f.lasting && f.kind != stop && r.meets(f.interval) {
			names = append(names, label{class: "fault", at: (r.x(f.from) + r.x(f.until)) / 2, text: f.kind})
		}
	}
	r.name(l.candidate, barHeight-3, r.counts(l.candidate))
	r.waits(l)
	tokens := r.leads(l)
	for _, f := range r.s.faults {
		if f.candidate != l.candidate || !f.lasting || !r.meets(f.interval) {
			continue
		}
		x := r.x(f.from)
		w := max(r.x(f.until)-x, 1.5)
		if f.kind == stop {
			r.rect("stop", x, r.y, w, barHeight, r.tell(f))
		} else {
			r.rect("broken", x, r.y+barHeight+1, w, 4.5, r.tell(f))
		}
	}
	r.WriteString(tokens)
	r.strip(l)
	r.marks(l)
	r.y += laneHeight
	r.labels(names, 2)
}

// waits draws a candidate's process: dashed until it campaigns, then a line, and
// dots once it is dead.
func (r *row) waits(l *life) {
	y := r.y + barHeight/2
	line := func(class string, from, until time.Duration, title string) {
		if i := (interval{from, until}); from < until && r.meets(i) && r.x(from) < r.x(until) {
			r.path(class, fmt.Sprintf("M%s %sH%s", num(r.x(from)), num(y), num(r.x(until))), title)
		}
	}
	opened := l.opened
	if opened == 0 {
		opened = l.died
	}
	line("opening", l.from, opened, "the process starts")
	line("wait", opened, l.died, "campaigns, does not lead")
	if l.how != "" && r.has(l.died) {
		line("dead", l.died, r.s.end, "dead")
	}
}

// leads draws the leases, and returns the tokens, to be drawn above all else.
func (r *row) leads(l *life) string {
	var tokens drawing
	for _, p := range r.s.spans {
		if p.candidate != l.candidate || !r.meets(interval{p.from, p.until}) {
			continue
		}
		until := min(p.until, l.died)
		x, end := r.x(p.from), r.x(until)
		if r.meets(interval{p.from, until}) && (p.from < r.until && until > r.from) {
			r.rect("lead", x, r.y, max(end-x, 1.5), barHeight, r.tellLease(p))
			if t := fitting(p.token, end-x-4); t != "" {
				tokens.text("token", "middle", (x+end)/2, r.y+barHeight-3, t)
			}
		}
		if rest := (interval{until, p.until}); until < p.until && until < r.until && r.meets(rest) {
			from := r.x(until)
			r.rect("orphan", from, r.y+0.5, r.x(p.until)-from, barHeight-1, "the lease of a dead leader runs on: "+r.span(rest))
		}
	}
	return tokens.String()
}

// fitting returns a token, its last digits, or nothing, as there is room.
func fitting(token elector.Token, room float64) string {
	s := token.String()
	for _, keep := range []int{len(s), 6, 4, 3} {
		t := s
		if keep < len(s) {
			t = "…" + s[len(s)-keep:]
		}
		if widthOf(t) <= room {
			return t
		}
	}
	return ""
}

func (r *row) tellLease(p span) string {
	renewals, writes := 0, 0
	var canceled, released time.Duration
	trouble := ""
	for _, e := range r.s.events {
		if e.Candidate != p.candidate || e.Token != p.token {
			continue
		}
		switch e.Kind {
		case history.Renewed:
			renewals++
		case history.Accepted:
			writes++
		case history.Canceled:
			canceled = e.At
		case history.Released:
			released, trouble = e.At, e.Detail
		}
	}
	t := fmt.Sprintf("%s leads with token %v: %s; %s, %s accepted", p.candidate, p.token, r.span(interval{p.from, p.until}), plural(renewals, "renewal", "renewals"), plural(writes, "write", "writes"))
	if p.end != "" {
		t += "; " + p.end
	}
	if canceled != 0 {
		t += "; its worker knew at " + r.since(canceled)
	}
	if released != 0 {
		t += "; the store was told at " + r.since(released)
		if trouble != "" {
			t += " in vain: " + trouble
		}
	}
	return t
}

// strip draws the small things: a tick in the bar for each renewal; below it a
// tick for each failed request, and a line for each stall.
func (r *row) strip(l *life) {
	var renewals, trouble, stalls strings.Builder
	details := map[string]int{}
	longest := time.Duration(0)
	last := map[history.Kind]float64{}
	for _, e := range r.events {
		if e.Candidate != l.candidate {
			continue
		}
		x := r.x(e.At)
		kind := e.Kind
		if kind.IsFailure() {
			kind = history.Trouble
			details[e.Detail]++
		}
		if e.Kind == history.Stalled {
			longest = max(longest, e.Left)
			fmt.Fprintf(&stalls, "M%s %sH%s", num(r.x(e.At-e.Left)), num(r.y+barHeight+2), num(max(x, r.x(e.At-e.Left)+1)))
			continue
		}
		if at, ok := last[kind]; ok && x-at < 0.8 {
			continue // they cannot be told apart
		}
		switch kind {
		case history.Renewed:
			fmt.Fprintf(&renewals, "M%s %sv-3", num(x), num(r.y+barHeight))
		case history.Trouble:
			fmt.Fprintf(&trouble, "M%s %sv4.5", num(x), num(r.y+barHeight+1))
		default:
			continue
		}
		last[kind] = x
	}
	if stalls.Len() > 0 {
		r.path("k-stalled", stalls.String(), "stood still, at most for "+length(longest))
	}
	if renewals.Len() > 0 {
		r.path("k-renewed", renewals.String(), "renewed")
	}
	if trouble.Len() > 0 {
		r.path("k-trouble", trouble.String(), "requests failed: "+join(details, 5))
	}
}

// join writes texts and how often each was told, at most some of them.
func join(texts map[string]int, most int) string {
	var list []string
	for _, t := range slices.Sorted(maps.Keys(texts)) {
		if len(list) == most {
			return strings.Join(list, "; ") + fmt.Sprintf("; and %d others", len(texts)-most)
		}
		if texts[t] > 1 {
			t = fmt.Sprintf("%s (%d times)", t, texts[t])
		}
		list = append(list, t)
	}
	return strings.Join(list, "; ")
}

// counts describes what a candidate reported in this row, and what was reported
// about it.
func (r *row) counts(candidate string) string {
	of := map[history.Kind]int{}
	for _, e := range r.events {
		if e.Candidate == candidate {
			of[e.Kind]++
		}
	}
	if len(of) == 0 {
		return candidate
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%s %d", k, of[k]))
	}
	return candidate + ": " + strings.Join(list, ", ")
}
