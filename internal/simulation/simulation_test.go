package simulation

import (
	"flag"
	"strings"
	"testing"
)

var (
	seedsFlag = flag.Int("seeds", 500, "how many seeds the random campaign runs")
	aloneFlag = flag.Bool("alone", false, "let only the replays of steps judge")
	seedFlag  = flag.Uint64("seed", 0, "run the random campaign with this seed alone, and the other cases with it")
)

// A simCase is a case of the list that this package shows in simulated time.
type simCase struct {
	name string
	run  func(t *testing.T)
}

func TestSimulation(t *testing.T) {
	seen := map[string]bool{}
	for _, list := range [][]simCase{exclusionCases, tokenCases, expiryCases, renewalCases, ambiguityCases, clockCases, recordCases, lossCases, campaignCases, measureCases} {
		for _, c := range list {
			if seen[c.name] || strings.Count(c.name, "/") != 1 {
				t.Fatalf("case %q: its name is taken or is not of the form group/case", c.name)
			}
			seen[c.name] = true
			t.Run(c.name, c.run)
		}
	}
}
