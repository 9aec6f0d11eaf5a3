package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

// A testCase is one case of the suite. The comment of its function states the
// rule.
type testCase struct {
	name string
	raw  bool // needs Raw
	run  func(s *suite)
}

// A stage is a part of the suite that begins only if the one before passed.
type stage struct {
	group    string // "backend", "elector" or "group"
	cases    []testCase
	failures int // with so many failed cases the stage ends
}

var stages = []stage{
	{"backend", basicCases, 1},
	{"backend", backendCases, 2},
	{"elector", electorCases, 2},
	{"group", groupCases, 2},
}

// known reports whether there is a case of this name.
func known(name string) bool {
	for _, stage := range stages {
		for _, c := range stage.cases {
			if c.name == name {
				return true
			}
		}
	}
	return false
}

// run runs the cases. It returns what was broken, by the cases that failed, and
// the cases that were not run.
func (g stage) run(t *testing.T, h Harness) (broken []string, rest []testCase) {
	t.Helper()
	for i, c := range g.cases {
		if end, ok := t.Deadline(); ok && time.Until(end) < 25*time.Second {
			// Its dump of goroutines would hide the messages of the suite.
			t.Errorf("go test's -timeout is almost over: set a longer one, or Harness.Slow for smaller counts")
			return append(broken, g.group+"/"+c.name+": there was no time to run it"), g.cases[i:]
		}
		if rule, ok := g.runCase(t, h, c); !ok {
			broken = append(broken, g.group+"/"+c.name+": "+rule)
		}
		if len(broken) == g.failures {
			return broken, g.cases[i+1:]
		}
	}
	return broken, nil
}

// runCase runs one case. It returns the rule that was broken if the case failed.
func (g stage) runCase(t *testing.T, h Harness, c testCase) (broken string, ok bool) {
	name := g.group + "/" + c.name
	s := &suite{h: h, group: g.group, name: uniqueName(c.name), first: &account{}, not: h.NotApplicable[c.name]}
	if s.not == "" && c.raw && h.Raw == nil {
		s.not = "the harness has no raw access to the store"
	}
	ok = t.Run(name, func(t *testing.T) {
		s.T = t
		t.Cleanup(func() { // registered first, so it runs after all others, which may fail too
			s.first.end()
			switch {
			case t.Failed():
				s.hint()
				s.report(name, "failed", s.first.text())
			case s.not != "":
				t.Logf("not applicable: %s", s.not)
				s.report(name, "not applicable", s.not)
			default:
				s.report(name, "passed", "")
			}
		})
		if s.not == "" {
			c.run(s)
		}
	})
	return s.first.text(), ok
}

func (s *suite) report(name, result, reason string) {
	if s.h.Report != nil {
		s.h.Report(name, result, reason)
	}
}

// hint logs what to try where load or a slow store may be why the case failed.
func (s *suite) hint() {
	s.Helper()
	faster := "set Harness.Slow, which selects small counts and allows each call more time"
	if s.h.Slow {
		faster = "give the machine or the store less to do (Harness.Slow is set)"
	}
	switch {
	case s.group != "backend":
		s.Logf("hint: the backend alone has passed. If the machine is busy or the store is slow, set a longer Harness.TTL (default 400ms), or %s", faster)
	case s.first.waited():
		s.Logf("hint: if the machine is busy or the store is slow, %s", faster)
	}
}

// uniqueName returns an election name that no other run uses, so that nothing
// needs to be cleaned up.
func uniqueName(of string) string {
	var b [6]byte
	rand.Read(b[:])
	return strings.ReplaceAll(of, "/", "-") + "-" + hex.EncodeToString(b[:])
}
