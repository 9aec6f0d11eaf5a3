package storms

import (
	"cmp"
	"crypto/rand"
	"errors"
	"flag"
	"log/slog"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

var takeovers = flag.Int("takeovers", 100, "takeovers of each storm")

// run sets the elections of this run apart from those of others on the same store.
var run = strings.ToLower(rand.Text()[:8])

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}

// start starts a store, which ends with the test.
func start(t *testing.T, kind string) *stores.Store {
	t.Helper()
	s, err := stores.Start(t.Context(), kind)
	must(t, err)
	t.Logf("%v", s)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// pass wants the guard of a storm to refuse every stale write and to disturb
// nothing. The storm has -takeovers unless it has a number of its own.
func pass(t *testing.T, s Storm) {
	t.Helper()
	s.Takeovers = cmp.Or(s.Takeovers, *takeovers)
	s.Needs = func(r Result) bool { return r.Commits > 0 && r.Refusals > 0 && r.Renewals > 0 }
	r, err := s.Run(t.Context())
	t.Logf("%s: %v", s.Election, r)
	switch {
	case err != nil:
		t.Fatal(err)
	case r.Late > 0 || r.Disordered > 0:
		t.Error("stale writes were committed")
	case r.FalseRefusals > 0:
		t.Error("writes of the leader were refused")
	case r.RenewalsFailed > 0:
		t.Error("the guard made renewals fail")
	case !s.Needs(r):
		t.Error("the storm shows nothing: it needs commits, refusals and renewals")
	}
}

// caught wants a storm to show what is wrong with a broken guard. It ends with the
// first case, and goes on for much longer than one that passes until there is one.
func caught(t *testing.T, s Storm, wrong func(Result) int) {
	t.Helper()
	s.Takeovers = 20 * cmp.Or(s.Takeovers, *takeovers)
	s.Until = func(r Result) bool { return wrong(r) > 0 }
	r, err := s.Run(t.Context())
	t.Logf("%s: %v", s.Election, r)
	switch {
	case err != nil:
		t.Fatal(err)
	case wrong(r) == 0:
		t.Error("a broken guard is not caught")
	}
}

// What can be wrong with a guard.
func late(r Result) int           { return r.Late }
func falselyRefused(r Result) int { return r.FalseRefusals }
func renewalsFailed(r Result) int { return r.RenewalsFailed }

// lead returns a lease of an election that is free.
func lead(t *testing.T, b backends.Backend, name string) (*elector.Elector, *elector.Lease) {
	t.Helper()
	e, err := elector.New(b, name, &elector.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	lease, err := e.TryCampaign(t.Context())
	must(t, err)
	return e, lease
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns what a backend's New has made.
func made[B any](b B, err error) B {
	if err != nil {
		panic(err)
	}
	return b
}

func wants(t testing.TB, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", doing, err, want)
	}
}
