package shortage

import (
	"fmt"
	"time"

	"github.com/elector-go/elector/internal/proof/stores"
)

// A bound says what a part must come to.
type bound struct {
	percent int           // of the elections that are always led
	back    time.Duration // until all are led
	kept    bool          // whether no lease may end
}

// bound returns that of a part on a kind of store.
func (p Part) bound(kind string) bound {
	switch p {
	case Scarce:
		return bound{percent: 99, back: 10 * time.Second}
	case Starved:
		return bound{percent: 50, back: 10 * time.Second}
	case Stopped:
		return bound{back: 5 * time.Second, kept: kind == stores.Etcd}
	default:
		return bound{back: 15 * time.Second, kept: true}
	}
}

// onWire is how many requests may be under way at a time.
const onWire = 8

// Wrong returns what is not as it must be.
func (r Row) Wrong() (all []string) {
	check := func(good bool, format string, args ...any) {
		if !good {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	b := r.Part.bound(r.Kind)
	least := r.Elections * b.percent / 100
	check(r.Least >= least, "%d are led, of at least %d", r.Least, least)
	check(r.After >= 0 && r.After <= b.back, "not all are led within %v", b.back)
	check(!b.kept || r.Ended == 0, "%d leases end, and none may", r.Ended)
	check(r.Requests.Most <= onWire, "%d requests at a time, of at most %d", r.Requests.Most, onWire)
	check(100*r.Requests.Single() < max(r.Requests.Records, 1), "%d of %d records go by themselves, of less than 1 %%", r.Requests.Single(), r.Requests.Records)
	check(r.Logged.Repeated == 0, "%d lines of the log repeat their causes", r.Logged.Repeated)
	return all
}
