package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A story is one election, put together from its events for figures and for
// drawing.
type story struct {
	election   history.Election
	events     []history.Event // in order
	begin, end time.Duration   // of the whole history
	lives      []*life         // by their first event
	spans      []span
	faults     []fault // by their beginning
	gaps       []gap
	overlaps   []overlap
	stale      []history.Event // writes that were accepted though a newer one, or a newer leader, had been
	problems   []Problem
}

// An interval is a stretch of time on BootTime.
type interval struct{ from, until time.Duration }

// A life is what is known of one candidate's process.
type life struct {
	candidate string
	from      time.Duration // of its first event
	opened    time.Duration // it began to campaign; zero if it never did
	died      time.Duration // the process cannot lead from here on
	told      time.Duration // it was told to end
	how       history.Kind  // Killed, Exited or Fatal; empty if it outlives the history
	stops     []interval
	stalls    []interval
	broken    []interval // the faults that hit it, stops too
}

// A fault is something that was broken, in one candidate or, if that is empty,
// in the store or its record.
type fault struct {
	interval         // until it was healed; of a momentary one until it was done
	kind      string // as in the figures
	candidate string
	healed    bool // false if a lasting one was never healed
	lasting   bool
}

// Kinds of fault that a campaign does not name by a Detail.
const (
	kill      = "process killed"
	stop      = "process stopped"
	terminate = "process terminated"
	removed   = "record removed"
	restored  = "record rolled back"
	spoiled   = "record spoiled"
	critical  = "critical extension"
	noFault   = "no fault" // the kind of what happens while nothing is broken
)

// edits are the kinds of what was changed by hand in a record, by the Detail, or
// the class of an extension.
var edits = map[string]string{
	history.EditedHolder:   "holder emptied",
	history.EditedTTL:      "TTL changed",
	history.EditedInterval: "interval changed",
	history.EditedValue:    "value changed",
	"c":                    critical,
	"k":                    "kept extension",
	"t":                    "term extension",
}

// stories returns the story of each election, in the history's order.
func stories(h *history.History, problems []Problem) []*story {
	h = &history.History{Elections: slices.Clone(h.Elections), Events: slices.Clone(h.Events)}
	h.Sort()
	of := map[string]*story{}
	for _, e := range h.Elections {
		of[e.Name] = &story{election: e}
	}
	var list []*story
	add := func(name string) *story {
		s := of[name]
		if s == nil { // nothing that was told is left out
			e := history.Election{Store: "unknown store", Name: name}
			h.Elections = append(h.Elections, e)
			s = &story{election: e}
			of[name] = s
		}
		return s
	}
	for _, e := range h.Events {
		s := add(e.Election)
		s.events = append(s.events, e)
	}
	for _, p := range problems {
		s := add(p.Election)
		s.problems = append(s.problems, p)
	}
	begin, end := bounds(h.Events)
	for _, e := range h.Elections {
		s := of[e.Name]
		s.begin, s.end = begin, end
		s.live()
		s.spans = spansOf(s.events)
		s.findOverlaps()
		s.findGaps()
		s.findStale()
		list = append(list, s)
	}
	return list
}

func bounds(events []history.Event) (begin, end time.Duration) {
	for i, e := range events {
		if b := start(e); i == 0 || b < begin {
			begin = b
		}
		end = max(end, e.At)
	}
	return begin, end
}

// start is when what an event tells may have begun.
func start(e history.Event) time.Duration {
	if e.Before > 0 && e.Before < e.At {
		return e.Before
	}
	return e.At
}

// live finds the processes and the faults.
func (s *story) live() {
	lives := map[string]*life{}
	open := map[string]int{} // lasting faults that are not healed, by candidate and kind
	heal := func(e history.Event, kind string) bool {
		k := e.Candidate + "\x00" + kind
		i, ok := open[k]
		if ok {
			s.faults[i].until, s.faults[i].healed = e.At, true
			delete(open, k)
		}
		return ok
	}
	begin := func(e history.Event, kind string, lasting bool) {
		f := fault{interval{start(e), e.At}, kind, e.Candidate, !lasting, lasting}
		if lasting {
			heal(e, kind) // the same again ends the earlier one
			f.until = s.end
			open[e.Candidate+"\x00"+kind] = len(s.faults)
		}
		s.faults = append(s.faults, f)
	}
	last := s.lastMove()
	for _, e := range s.events {
		l := lives[e.Candidate]
		if l == nil && e.Candidate != "" {
			l = &life{candidate: e.Candidate, from: start(e), died: s.end, told: s.end}
			lives[e.Candidate] = l
			s.lives = append(s.lives, l)
		}
		die := func(at time.Duration) {
			if l != nil && l.how == "" {
				l.died, l.how = at, e.Kind
			}
		}
		switch e.Kind {
		case history.Opened:
			if l != nil {
				l.opened = e.At
			}
		case history.Stalled:
			if l != nil {
				l.stalls = append(l.stalls, interval{e.At - e.Left, e.At})
			}
		case history.Killed:
			begin(e, kill, false)
			die(start(e))
		case history.Exited, history.Fatal:
			die(e.At)
		case history.Terminated:
			if e.At < last {
				begin(e, terminate, false)
			}
			if l != nil {
				l.told = min(l.told, e.At)
			}
		case history.Stopped:
			begin(e, stop, true)
		case history.Continued:
			heal(e, stop)
		case history.Fault:
			begin(e, e.Detail, true)
		case history.Healed:
			heal(e, e.Detail)
		case history.Removed:
			if !heal(e, spoiled) { // what mends a record is no fault
				begin(e, removed, false)
			}
		case history.Restored:
			if !heal(e, spoiled) { // what mends a record is no fault
				begin(e, restored, false)
			}
		case history.Spoiled:
			begin(e, spoiled, true)
		case history.Edited:
			what, value, extension := e.Extension()
			if extension {
				what, _, _ = strings.Cut(what, "_")
			}
			if kind := edits[what]; extension && value == "" {
				heal(e, kind)
			} else {
				begin(e, kind, kind == critical)
			}
		case history.Acquired:
			heal(history.Event{At: start(e)}, spoiled) // a candidate has read the record and written it
		}
	}
	slices.SortStableFunc(s.faults, func(a, b fault) int { return cmp.Compare(a.from, b.from) })
	for i, f := range s.faults {
		l := lives[f.candidate]
		if l == nil {
			continue
		}
		if !f.healed && l.how != "" { // nothing is broken in the dead
			s.faults[i].until = max(f.from, min(f.until, l.died))
		}
		if f.lasting {
			l.broken = append(l.broken, s.faults[i].interval)
		}
		if f.kind == stop {
			l.stops = append(l.stops, s.faults[i].interval)
		}
	}
}

// lastMove returns when the last process was started or the last leader elected.
// Candidates that are told to end after it make up the end of the campaign and
// are no faults.
func (s *story) lastMove() (at time.Duration) {
	for _, e := range s.events {
		if e.Kind == history.Started || e.Kind == history.Acquired {
			at = e.At
		}
	}
	return at
}

// dies returns when the process of a candidate could not lead any more.
func (s *story) dies(candidate string) time.Duration {
	for _, l := range s.lives {
		if l.candidate == candidate {
			return l.died
		}
	}
	return s.end
}

// An overlap is a time in which two leases were surely valid.
type overlap struct {
	interval
	one, other span

	// tampered is set if the record was deleted or written back during the
	// first of the leases, or its holder or TTL changed. A candidate that has
	// not seen the state that is gone cannot know of it; whether one had, and when
	// the holder ought to have known, is for the checker to say.
	tampered bool
}

func (s *story) findOverlaps() {
	for i, a := range s.spans {
		for _, b := range s.spans[i+1:] {
			if from, until := max(a.from, b.from), min(a.until, b.until); from < until {
				s.overlaps = append(s.overlaps, overlap{interval{from, until}, a, b, s.tampered(a, from)})
			}
		}
	}
}

// tampered says whether the record was changed behind everybody's back, so that
// others could lead, from when a lease began until some time.
func (s *story) tampered(first span, until time.Duration) bool {
	return slices.ContainsFunc(s.events, func(e history.Event) bool {
		if e.At < first.from || e.Before > until {
			return false
		}
		switch e.Kind {
		case history.Removed, history.Restored, history.Spoiled:
			return true
		case history.Edited:
			return e.Token == first.token && (e.Detail == history.EditedHolder || e.Detail == history.EditedTTL)
		}
		return false
	})
}

func (s *story) findStale() {
	highest := elector.Token(0)
	for _, e := range s.events {
		if e.Kind != history.Accepted {
			continue
		}
		if e.Token < highest {
			s.stale = append(s.stale, e)
		}
		highest = max(highest, e.Token)
	}
	for _, e := range history.Overtaken(s.events) {
		if e.Kind == history.Committed {
			s.stale = append(s.stale, e)
		}
	}
}

// blame returns the kind of fault that what happens at a time is counted for,
// see Figures.
func (s *story) blame(at time.Duration) string {
	kind := noFault
	for _, f := range s.faults {
		if f.from > at {
			break
		}
		if at <= f.until+s.election.Rules.Takeover {
			kind = f.kind
		}
	}
	return kind
}
