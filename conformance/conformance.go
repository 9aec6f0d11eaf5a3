// Package conformance is the suite that proves a backend, and the elector on
// top of it, against the guarantees of this module. It imports only the
// standard library besides the module itself, and anybody's backend can run
// it:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Open: func(t testing.TB) backends.Backend { return mystore.New(client) },
//		})
//	}
//
// Give Raw as well: without it the cases in which somebody else deletes,
// spoils or restores a record cannot be shown.
package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Harness tells the suite how to reach a store.
type Harness struct {
	// Open returns a new handle on the same store at each call. The suite
	// closes it.
	Open func(t testing.TB) backends.Backend

	// Raw reaches the store behind the backend's back.
	Raw *Raw

	// Setups are stores that are set up wrongly in some way, by a name for
	// each: every function opens one and returns the error, which must be
	// typed and say what to do (case bad/schema).
	Setups map[string]func(t testing.TB) error

	// TTL is the lease time of the cases with the elector. Default: 400 ms,
	// or the backend's MinTTL if that is longer. A slow machine wants more.
	TTL time.Duration

	// Slow asks for small counts, for stores where each write costs
	// milliseconds.
	Slow bool

	// NotApplicable names cases that this store cannot show, with the reason.
	NotApplicable map[string]string

	// Report is called once for each case with its group and name, as in
	// backend/mx/race, with "passed", "failed" or "not applicable", and with
	// the reason for the last.
	Report func(name, result, reason string)
}

// Raw reaches the store behind the backend's back. All functions fail the test
// on error.
type Raw struct {
	// Get returns what the store keeps for an election, nil if nothing, in a
	// form that Put takes.
	Get func(t testing.TB, name string) []byte
	// Put replaces it.
	Put func(t testing.TB, name string, content []byte)
	// Delete removes it.
	Delete func(t testing.TB, name string)
	// Depose removes the mark of the holder's presence; for a
	// PresenceWatcher.
	Depose func(t testing.TB, name string)

	// Spoiled, if not nil, are bad records of this store's own form, by the
	// name of the case ("bad/ttl") and a name: each spoils the valid record
	// that is there, which was written by a Swap, and leaves its attempt as
	// it is unless that is what it spoils. Without it the store keeps the
	// JSON that backends.Encode writes, and the suite spoils that.
	Spoiled map[string]map[string]func(t testing.TB, name string)
}

// A testCase is one case of the suite. Its name says where the rule comes from:
// see the comment of its function.
type testCase struct {
	name string
	raw  bool // needs Raw
	run  func(s *suite)
}

// suite is what a case gets: one *testing.T, one election name of its own.
type suite struct {
	*testing.T
	h    Harness
	name string
	not  string // why the case is not applicable, as found out by itself
}

// notApplicable says why this store cannot show the case, which then returns.
func (s *suite) notApplicable(reason string) { s.not = reason }

// Run runs every case as a subtest: backend/mx/race, say, is the case mx/race
// against the backend alone, and elector/res/order is res/order against the
// elector over it. Some cases are in both groups.
func Run(t *testing.T, h Harness) {
	runCases(t, h, "backend", backendCases)
	runCases(t, h, "elector", electorCases)
	known := map[string]bool{}
	for _, c := range append(append([]testCase{}, backendCases...), electorCases...) {
		known[c.name] = true
	}
	for name, reason := range h.NotApplicable {
		if !known[name] || reason == "" {
			t.Errorf("the harness says that case %q is not applicable, and there is no such case, or no reason", name)
		}
	}
}

func runCases(t *testing.T, h Harness, group string, cases []testCase) {
	for _, c := range cases {
		name := group + "/" + c.name
		t.Run(name, func(t *testing.T) {
			s := &suite{T: t, h: h, name: uniqueName(c.name), not: h.NotApplicable[c.name]}
			if s.not == "" && c.raw && h.Raw == nil {
				s.not = "the harness has no raw access to the store"
			}
			t.Cleanup(func() { // the last of all clean-ups, which may fail too
				switch {
				case t.Failed():
					h.report(name, "failed", "")
				case s.not != "":
					t.Logf("not applicable: %s", s.not)
					h.report(name, "not applicable", s.not)
				default:
					h.report(name, "passed", "")
				}
			})
			if s.not == "" {
				c.run(s)
			}
		})
	}
}

func (h Harness) report(name, result, reason string) {
	if h.Report != nil {
		h.Report(name, result, reason)
	}
}

// uniqueName makes an election name that no other run uses, so that nothing
// needs cleaning up.
func uniqueName(of string) string {
	var b [6]byte
	rand.Read(b[:])
	return strings.ReplaceAll(of, "/", "-") + "-" + hex.EncodeToString(b[:])
}

// watchdog is how long a case waits for something that must happen. It is no
// measure: a slow machine must not break it. Only the tests of the suite
// itself, which wait for what does not happen, shorten it.
var watchdog = time.Minute

// wait blocks until c delivers, and fails the case after the watchdog's time.
func wait[T any](s *suite, c <-chan T, rule string) T {
	s.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(watchdog):
		s.Fatalf("nothing within %v: %s", watchdog, rule)
		panic("unreachable")
	}
}

// open returns a new handle, closed at the end of the case.
func (s *suite) open() backends.Backend {
	b := s.h.Open(s)
	s.Cleanup(func() {
		if err := b.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return b
}

// ttl is the lease time for elector cases.
func (s *suite) ttl(b backends.Backend) time.Duration {
	if s.h.TTL != 0 {
		return s.h.TTL
	}
	return max(400*time.Millisecond, b.Describe().MinTTL)
}

// rounds returns the number of rounds for a case.
func (s *suite) rounds(fast, slow int) int {
	if s.h.Slow {
		return slow
	}
	return fast
}

// must stops the case on an error.
func (s *suite) must(err error, doing string, args ...any) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}
