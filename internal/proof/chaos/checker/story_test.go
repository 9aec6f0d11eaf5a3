package checker

import (
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// rules of the stories: H is 1800 ms, C 2200 ms, a renewal comes each 600 ms, a
// request takes 300 ms, and tau is 3350 ms.
var rules = history.RulesOf(2*time.Second, 0)

const ms = time.Millisecond

// A story is a history made by hand. Times are in milliseconds; what is told
// took one.
type story struct {
	events []history.Event
	audit  int // in TTLs, of a partition
}

func (s *story) tell(at int, candidate string, kind history.Kind, token elector.Token, change ...func(*history.Event)) {
	e := history.Event{Election: "story", Candidate: candidate, Kind: kind, Token: token, Before: time.Duration(at) * ms, At: time.Duration(at+1) * ms}
	for _, c := range change {
		c(&e)
	}
	s.events = append(s.events, e)
}

func (s *story) history() *history.History {
	r := rules
	if s.audit > 0 {
		r = history.RulesOfGroup(2*time.Second, 0, s.audit)
	}
	h := &history.History{Elections: []history.Election{{Store: "none", Name: "story", Rules: r}}, Events: slices.Clone(s.events)}
	h.Sort()
	return h
}

func left(millis int) func(*history.Event) {
	return func(e *history.Event) { e.Left, e.Valid = time.Duration(millis)*ms, millis > 0 }
}
func detail(text string) func(*history.Event) { return func(e *history.Event) { e.Detail = text } }
func holder(name string) func(*history.Event) { return func(e *history.Event) { e.Holder = name } }
func number(n uint64) func(*history.Event)    { return func(e *history.Event) { e.Number = n } }
func until(at int) func(*history.Event) {
	return func(e *history.Event) { e.At = time.Duration(at) * ms }
}
func stalled(millis int) func(*history.Event) {
	return func(e *history.Event) { e.Left = time.Duration(millis) * ms }
}

func (s *story) look(at int, candidate string, kind history.Kind, token elector.Token, millis int) {
	s.tell(at, candidate, kind, token, left(millis))
}

// open starts candidates.
func (s *story) open(candidates ...string) {
	for _, c := range candidates {
		s.tell(0, c, history.Started, 0)
		s.tell(10, c, history.Opened, 0)
	}
}

// led starts candidates of which A leads with token 5 from 100 on, and renews its
// lease until 1000.
func (s *story) led(candidates ...string) {
	s.open(candidates...)
	s.lead("A", 5, 100, 1000)
}

// lead acquires and renews a lease from a time on; the last renewal is sent in
// the second half second before the other time.
func (s *story) lead(candidate string, token elector.Token, from, until int) {
	s.look(from+10, candidate, history.Acquired, token, 1785)
	for at := from + 600; at < until; at += 600 {
		s.look(at+10, candidate, history.Renewed, token, 1785)
	}
}

// resign ends a lease in order.
func (s *story) resign(at int, candidate string, token elector.Token) {
	s.tell(at, candidate, history.Canceled, token)
	s.tell(at+2, candidate, history.Ended, token, detail("resigned: "))
	s.tell(at+10, candidate, history.Released, token)
}

// lose ends a lease that was not renewed.
func (s *story) lose(at int, candidate string, token elector.Token) {
	s.tell(at, candidate, history.Canceled, token)
	s.tell(at+2, candidate, history.Ended, token, detail("lost: it was not renewed"))
}

// edit changes one thing in the record by hand; show reads it.
func (s *story) edit(at int, token elector.Token, by string, what string, change ...func(*history.Event)) {
	s.tell(at, "", history.Edited, token, append(change, holder(by), detail(what))...)
}

func (s *story) show(at int, token elector.Token, by, extensions string) {
	s.tell(at, "", history.Shown, token, holder(by), detail(extensions))
}

// write adds a write and the answer.
func (s *story) write(at int, candidate string, token elector.Token, n uint64, answer history.Kind) {
	s.tell(at, candidate, history.Writing, token, number(n), left(1500))
	s.answer(at+2, candidate, token, n, answer)
}

// guarded adds a guarded write and the answer. keep tells that one stands in
// the data, after those that were told before.
func (s *story) guarded(sent, at int, candidate string, token elector.Token, n uint64, answer history.Kind) {
	s.tell(sent, candidate, answer, token, number(n), until(at))
}

func (s *story) keep(candidate string, token elector.Token, n uint64) {
	s.tell(10000+len(s.events), candidate, history.Kept, token, number(n))
}

func (s *story) answer(at int, candidate string, token elector.Token, n uint64, answer history.Kind) {
	did := history.Accepted
	if answer == history.Refused {
		did = history.Rejected
	}
	s.tell(at, candidate, did, token, number(n))
	s.tell(at-1, candidate, answer, token, number(n), until(at+3))
}
