package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector/backends"
)

// trips compares the round trips with what an elector allows.
func (p *patient) trips() {
	limit := requestTimeout(p.TTL)
	seen, slowest := "", time.Duration(0)
	for _, kind := range []struct {
		what  string
		times []time.Duration
	}{{"reads", p.reads}, {"writes", p.writes}} {
		if len(kind.times) == 0 {
			continue
		}
		slices.Sort(kind.times)
		worst := kind.times[len(kind.times)-1]
		slowest = max(slowest, worst)
		seen += fmt.Sprintf("%d %s: median %v, worst %v; ", len(kind.times), kind.what, rounded(kind.times[len(kind.times)/2]), rounded(worst))
	}
	seen += fmt.Sprintf("a request may take %v with a TTL of %v", rounded(limit), p.TTL)
	// A request timeout is about a seventh of the TTL.
	fix := fmt.Sprintf("use a TTL of %v or more, or bring the store nearer", (slowest*20).Round(100*time.Millisecond)+100*time.Millisecond)
	switch {
	case slowest > limit:
		p.line("round trips", seen, fix+": leases will be lost", backends.ErrMisconfigured)
	case slowest > limit/2:
		p.line("round trips", seen, fix+": a little more load, and leases will be lost", nil)
	default:
		p.line("round trips", seen, "", nil)
	}
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
