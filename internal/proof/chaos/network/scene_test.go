package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A scene is one election of a case, and all its events.
type scene struct {
	testing.TB
	place
	election string
	mutant   mutant
	patience time.Duration // how long to wait for anything

	events history.Log

	mutex      sync.Mutex
	candidates []*candidate
	all        sync.WaitGroup
}

func newScene(t testing.TB, p place, name string) *scene {
	s := &scene{TB: t, place: p, election: unique(strings.ReplaceAll(name, "/", "-")), patience: enough}
	t.Cleanup(func() {
		s.all.Wait()
		if t.Failed() {
			s.dump()
		}
	})
	return s
}

// dump prints what was told but for looks that show nothing new.
func (s *scene) dump() {
	var b strings.Builder
	events, _, _ := s.events.From(0)
	for i, e := range events {
		if e.Kind != history.Checked && e.Kind != history.Renewed || i == 0 || !slices.ContainsFunc(events[:i], func(f history.Event) bool {
			return f.Kind == e.Kind && f.Candidate == e.Candidate && f.Token == e.Token && f.Valid == e.Valid
		}) {
			fmt.Fprintln(&b, e)
		}
	}
	s.Logf("election %s on %s:\n%s", s.election, s.store, b.String())
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, c := range s.candidates[:min(len(s.candidates), 3)] {
		var b strings.Builder
		c.mutex.Lock()
		for _, r := range c.requests[max(0, len(c.requests)-60):] {
			fmt.Fprintf(&b, "%12.6f %s took %v: %v\n", r.at.Seconds(), r.op, r.took, r.err)
		}
		c.mutex.Unlock()
		s.Logf("the requests of %s, the latest:\n%sits log:\n%s", c.ID(), b.String(), c.log.String())
	}
}

// await blocks until an event after the first so many matches.
func (s *scene) await(from int, what string, match func(history.Event) bool) history.Event {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	e, err := s.events.Wait(ctx, from, what, match)
	if err != nil {
		s.Fatalf("waited %v: %s", s.patience, what)
	}
	return e
}

// context ends when the scene's patience does, or the test.
func (s *scene) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *scene) must(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// within blocks until there is something to receive.
func within[T any](s *scene, c <-chan T, what string) T {
	s.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(s.patience):
		s.Fatalf("waited %v: %s", s.patience, what)
		panic("not reached")
	}
}

// until blocks until something is so that no event reports.
func (s *scene) until(what string, so func() bool) {
	s.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for overdue := time.After(s.patience); !so(); {
		select {
		case <-again.C:
		case <-overdue:
			s.Fatalf("waited %v: %s", s.patience, what)
		}
	}
}

// hold is H and challenge is C, for the default clock drift.
func hold(ttl time.Duration) time.Duration      { return ttl - ttl/10 }
func challenge(ttl time.Duration) time.Duration { return ttl + ttl/10 }

// short are options for leases that shall expire.
func short() elector.Options {
	return elector.Options{TTL: 3 * time.Second, RenewEvery: 600 * time.Millisecond, RequestTimeout: 600 * time.Millisecond}
}

// takeoverWithin is tau: the longest from the end of a holder to the next
// leader.
func takeoverWithin(o elector.Options) time.Duration {
	const jitter = 250 * time.Millisecond // J
	return challenge(o.TTL) + o.RenewEvery + o.RequestTimeout + jitter
}

// steady are options for leases that shall ride out a trouble, also on a slow
// machine.
func steady() elector.Options {
	return elector.Options{TTL: 8 * time.Second, RenewEvery: time.Second, RequestTimeout: 500 * time.Millisecond}
}

// lasting are options for leases that are renewed often and last so long that
// no candidate leads because C is over. A waiter that polls reads no more often than
// twenty times in a TTL.
func lasting() elector.Options {
	return elector.Options{TTL: 20 * time.Second, RenewEvery: time.Second, RequestTimeout: 500 * time.Millisecond}
}

// A term is for how long a lease was valid for certain.
type term struct {
	candidate string
	token     elector.Token
	from, to  time.Duration
}

// terms returns those of all leases, in the order of their beginning. A lease
// is surely valid from when a look at it was answered, until what it had left
// when the last look began is over, but if it was resigned or taken away no
// longer than until that look was answered.
func (s *scene) terms() []term {
	events, _, _ := s.events.From(0)
	cutShort := func(t term) bool {
		return slices.ContainsFunc(events, func(e history.Event) bool {
			return e.Kind == history.Ended && e.Candidate == t.candidate && e.Token == t.token && !strings.Contains(e.Detail, "not renewed within")
		})
	}
	var terms []term
	for _, e := range events {
		if !e.Valid {
			continue
		}
		i := slices.IndexFunc(terms, func(t term) bool { return t.candidate == e.Candidate && t.token == e.Token })
		if i < 0 {
			terms = append(terms, term{e.Candidate, e.Token, e.At, e.At})
			i = len(terms) - 1
		}
		t := &terms[i]
		t.from, t.to = min(t.from, e.At), max(t.to, e.At)
		if !cutShort(*t) {
			t.to = max(t.to, e.Before+e.Left)
		}
	}
	slices.SortFunc(terms, func(a, b term) int { return int(a.from - b.from) })
	return terms
}

// check holds what was told against guarantees 1, 2 and 5.
func (s *scene) check() {
	s.Helper()
	all := s.terms()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if b.from < a.to {
				s.Errorf("%s with token %v and %s with token %v both lead from %v until %v (guarantee 1)", a.candidate, a.token, b.candidate, b.token, b.from, min(a.to, b.to))
			}
			if b.token <= a.token {
				s.Errorf("%s leads with token %v after %s led with token %v (guarantee 5)", b.candidate, b.token, a.candidate, a.token)
			}
		}
	}
	events, _, _ := s.events.From(0)
	for _, c := range s.candidates {
		for _, e := range events {
			if e.Candidate != c.ID() || !e.Valid {
				continue
			}
			if answered := c.answered(e.At); e.Before >= answered+c.hold {
				s.Errorf("%s has a valid lease at %v, and the last answer came at %v: later than H = %v (guarantee 2)", c.ID(), e.Before, answered, c.hold)
				break
			}
		}
	}
}
