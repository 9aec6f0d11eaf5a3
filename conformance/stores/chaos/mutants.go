package chaos

import (
	"github.com/elector-go/elector/conformance/stores/chaos/checker"
	"github.com/elector-go/elector/internal/overlay"
)

// A Mutant is a known way to get the election wrong, built into candidates that
// are otherwise real: a campaign must find it.
type Mutant struct {
	Breaks string   // what it does, for people
	Rules  []string // of the checker, any of which finds it
	Places []string // where it is looked for; it is the same everywhere
	edits  []overlay.Edit
}

// Mutants are by their names.
var Mutants = map[string]Mutant{
	"holder-overstays": {
		Breaks: "a holder trusts its lease for one and a half TTLs",
		Rules:  []string{"mx/two-valid"},
		Places: []string{"etcd", "file"},
		edits:  []overlay.Edit{{File: "options.go", Old: "return o.TTL - time.Duration(float64(o.TTL)*o.ClockDrift)", New: "return o.TTL + o.TTL/2"}},
	},
	"challenger-hurries": {
		Breaks: "a challenger waits for half a TTL",
		Rules:  []string{"mx/two-valid", checker.TooEarly},
		Places: []string{"postgres", "file"},
		edits:  []overlay.Edit{{File: "options.go", Old: "return ttl + time.Duration(float64(ttl)*o.ClockDrift)", New: "return ttl / 2"}},
	},
	"token-stays": {
		Breaks: "a takeover keeps the token of the holder before it",
		Rules:  []string{"tok/strict"},
		Places: []string{"zookeeper", "file"},
		edits:  []overlay.Edit{{File: "sighting.go", Old: "	return token, sane, nil", New: "	if s.record.Exists() && !s.record.Vacant() {\n\t\ttoken = s.record.Token\n\t}\n\treturn token, sane, nil"}},
	},
}
