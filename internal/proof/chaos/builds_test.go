package chaos

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/overlay"
	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/raw"
)

// nextBuild makes a later version of this library, which knows two more
// extensions of each class. Its acquisitions write those that are kept and those
// of the term, and k_one only where there is none. While barring is set in its environment, its acquisitions and
// releases write the critical ones too.
var nextBuild = []overlay.Edit{
	{File: "acquisition.go", Old: "annex.Acquired(prev, holder, a.token, now)", New: "nextBars(nextExtends(annex.Acquired(prev, holder, a.token, now)))"},
	{File: "acquisition.go", Old: "a.e.annex.Released(prev, a.why, a.successor, a.pause, now)", New: "nextBars(a.e.annex.Released(prev, a.why, a.successor, a.pause, now))"},
	{File: "nextbuild.go", New: `package elector

import (
	"crypto/rand"
	"os"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

func init() { rule.Known = append(rule.Known, "c_one", "c_two", "k_one", "k_two", "t_one", "t_two") }

func nextExtends(x backends.Extensions) backends.Extensions {
	for _, name := range []string{"k_one", "k_two", "t_one", "t_two"} {
		if _, there := x.Get(name); !there || name != "k_one" {
			x, _ = x.With(name, rand.Text())
		}
	}
	return x
}

func nextBars(x backends.Extensions) backends.Extensions {
	if os.Getenv("` + barring + `") != "" {
		x, _ = x.With("c_one", rand.Text())
		x, _ = x.With("c_two", rand.Text())
	}
	return x
}
`},
}

const barring = "ELECTOR_TEST_BARRING"

var passes = flag.Int("passes", 6, "how many elections pass from one build to the other at each place")

// TestTwoBuilds lets this build and the next one share an election, as they do
// in the middle of a rolling deploy, on each store that processes can share.
func TestTwoBuilds(t *testing.T) {
	dir := t.TempDir()
	this, err := build(t.Context(), dir, "this", stopInLock)
	if err != nil {
		t.Fatal(err)
	}
	next, err := build(t.Context(), dir, "next", slices.Concat(stopInLock, nextBuild))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if strings.HasSuffix(name, Nodes) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := NewRound(t.Context(), open(t, name), Settings{Programs: []string{this, next}, Dir: t.TempDir(), Random: rand.New(rand.NewPCG(1, 2)), Name: "builds"})
			if err != nil {
				t.Fatal(err)
			}
			b := &builds{t: t, Round: r, this: r.slots[0], next: r.slots[1]}
			t.Run("rec/kept and rec/term", func(*testing.T) { b.pass(*passes) })
			t.Run("rec/critical", func(*testing.T) { b.bar() })
			h, err := r.End(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range h.Events {
				if (e.Kind.IsFailure() || e.Kind == history.Fatal) && strings.Contains(e.Detail, backends.ErrForeignRecord.Error()) {
					t.Errorf("one build calls what the other wrote foreign: %v", e)
				}
			}
			for _, v := range checker.Check(h) {
				t.Error(v)
			}
		})
	}
}

// builds are two candidates of two builds.
type builds struct {
	t *testing.T
	*Round
	this, next *slot
	first      string              // value of k_one
	kept       backends.Extensions // of the next build's last record that was read
	token      elector.Token
}

func (b *builds) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// pass passes the election from one build to the other, and reads the record
// each time when it has been renewed.
func (b *builds) pass(times int) {
	for i := range times {
		leads, other := b.look(), b.next
		if leads == b.next {
			other = b.this
		}
		end := leads.kill // the other one replaces what this one wrote
		if i%5 > 0 {
			end = func() error { return leads.terminate(b.t.Context()) } // or the vacancy
		}
		b.handOver(other, end)
		b.must(b.start(leads))
	}
	b.look()
}

// handOver ends the leader's process, and waits until the other one writes.
func (b *builds) handOver(other *slot, end func() error) {
	position := b.log.Position()
	b.must(end())
	_, err := b.written(b.t.Context(), position, b.name, func(name string) bool { return name == other.name })
	b.must(err)
}

// look waits until a leader has renewed its record, and checks what its build
// must have made of the extensions. It returns the leader.
func (b *builds) look() *slot {
	ctx, cancel := context.WithTimeoutCause(b.t.Context(), patience, errors.New("no candidate leads for long enough"))
	defer cancel()
	for {
		b.must(b.calm(ctx))
		position := b.log.Position()
		e, err := b.log.Wait(ctx, position, "a renewal", func(e history.Event) bool { return e.Kind == history.Renewed || e.Kind == history.Ended })
		b.must(err)
		x := b.load()
		for _, s := range []*slot{b.this, b.next} {
			if e.Kind == history.Renewed && x.Holder == s.name && elector.Token(x.Token) == e.Token {
				b.check(s, e.Token, x.Extensions)
				return s
			}
		}
	}
}

func (b *builds) load() (x backends.Record) {
	b.must(insist(b.t.Context(), func() (err error) {
		x, err = raw.Load(b.t.Context(), b.place.records, b.name)
		return err
	}))
	return x
}

func (b *builds) check(s *slot, token elector.Token, x backends.Extensions) {
	kept := x.Class('k').Without("k_history") // which each acquisition changes
	b.t.Logf("token %d of %s: %s", token, s.name, x)
	if name := x.Critical(); name != "" {
		b.t.Errorf("%s leads, and its record has the extension %s", s.name, name)
	}
	if s == b.next {
		for _, name := range []string{"k_one", "k_two", "t_one", "t_two"} {
			if _, ok := x.Get(name); !ok {
				b.t.Errorf("the next build leads, and its record has only the extensions %s", x)
			}
		}
		one, _ := x.Get("k_one")
		if b.first == "" {
			b.first = one
		}
		if one != b.first {
			b.t.Errorf("the first value of k_one was %s, and now it is %s", b.first, one)
		}
		b.kept, b.token = kept, token
		return
	}
	for _, name := range []string{"t_one", "t_two"} {
		if _, ok := x.Get(name); ok {
			b.t.Errorf("this build leads, and its record still has the extensions %s", x)
		}
	}
	if kept != b.kept && !b.ledBetween(b.token, token) {
		b.t.Errorf("this build leads, and its record has the extensions %s, where the next build left %s", kept, b.kept)
	}
}

// ledBetween reports whether a candidate led between two tokens: on a slow machine
// a lease may be lost at any time.
func (b *builds) ledBetween(first, last elector.Token) bool {
	events, _, _ := b.log.From(0)
	return slices.ContainsFunc(events, func(e history.Event) bool {
		return e.Kind == history.Acquired && e.Token > first && e.Token < last
	})
}

// bar lets the next build write critical extensions, into a record that it holds
// and into a vacancy. This build stays away until the next one has removed them.
func (b *builds) bar() {
	ctx := b.t.Context()
	for what, end := range map[string]func() error{
		"held":   func() error { return b.next.kill() }, // whatever process it is then
		"vacant": func() error { return b.next.terminate(ctx) },
	} {
		b.letThisLead()
		b.must(b.next.terminate(ctx))
		b.extra = []string{barring + "=1"}
		b.must(b.start(b.next))
		b.extra = nil
		b.must(b.calm(ctx))
		healed := b.breaks("a critical extension stands", "")
		b.handOver(b.next, func() error { return b.this.terminate(ctx) })
		b.must(b.start(b.this))
		b.must(b.calm(ctx))
		position := b.log.Position()
		b.must(end())
		b.must(b.last(ctx, 3, 3)) // no candidate that may lead waits for longer
		x := b.load()
		if x.Vacant() != (what == "vacant") || x.Extensions.Critical() == "" {
			b.t.Errorf("the next build left a record that is to be %s and critical: %+v", what, x)
		}
		events, _, _ := b.log.From(position)
		read := false
		for _, e := range events {
			read = read || e.Kind == history.Observed && e.Candidate == b.this.name && e.Token == elector.Token(x.Token)
			if e.Kind == history.Acquired && e.Candidate == b.this.name {
				b.t.Errorf("this build has claimed the %s record: %v", what, e)
			}
		}
		if !read {
			b.t.Errorf("this build has not read the %s record", what)
		}
		b.must(b.start(b.next))
		b.look()
		healed()
	}
	b.letThisLead()
}

func (b *builds) letThisLead() {
	for b.look() == b.next {
		b.handOver(b.this, func() error { return b.next.terminate(b.t.Context()) })
		b.must(b.start(b.next))
	}
}
