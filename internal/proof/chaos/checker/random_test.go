package checker

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestGoodHistories finds nothing wrong with a right protocol, whatever breaks.
func TestGoodHistories(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := simulate(seed, none, 3*time.Minute)
			if len(h.Events) < 1000 {
				t.Fatalf("only %d events", len(h.Events))
			}
			if found := Check(h); len(found) > 0 {
				t.Fatalf("found in a good history:\n%v", texts(found))
			}
		})
	}
}

// TestMutants finds each mutant of the protocol, by the rule that it breaks.
func TestMutants(t *testing.T) {
	for _, c := range []struct {
		mutant mutant
		rules  []string // any of them
	}{
		{noFence, []string{"tok/fence"}},
		{holdFromResponse, []string{"mx/two-valid"}},
		{earlyTakeover, []string{"mx/two-valid"}},
		{lateTakeover, []string{"mx/takeover-bound"}},
		{overstays, []string{"exp/from-send"}},
		{tokenReset, []string{"tok/strict"}},
		{tokenStays, []string{"tok/strict"}},
		{releaseFirst, []string{"res/order"}},
		{resurrects, []string{"ren/resurrect"}},
		{timerOnly, []string{"exp/exact"}},
		{lateCancel, []string{"part/holder", "res/order"}},
		{vanishedIsVacant, []string{"mx/vanished", "mx/rollback", "mx/two-valid"}},
		{staleReads, []string{"obs/monotonic"}},
		{adoptsEdits, []string{"rec/edited"}},
		{leadsOnCritical, []string{"rec/critical"}},
		{claimsCritical, []string{"rec/critical"}},
		{dropsKept, []string{"rec/kept"}},
		{keepsTerm, []string{"rec/term"}},
		{ownsExtensions, []string{"rec/kept", "rec/term"}},
	} {
		t.Run(string(c.mutant), func(t *testing.T) {
			h := simulate(1, c.mutant, 10*time.Minute)
			found := Check(h)
			i := slices.IndexFunc(found, func(v Violation) bool { return slices.Contains(c.rules, v.Rule) })
			if i < 0 {
				t.Fatalf("found %q, want any of %q", rulesOf(found), c.rules)
			}
			t.Logf("%d violations of %q, the first of them\n%v", len(found), rulesOf(found), found[i])
		})
	}
}
