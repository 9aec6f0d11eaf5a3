package elector

// A purpose is what a request is for. Requests that hang are counted for each
// purpose, so that a user's reads cannot keep a leader from its renewals.
type purpose uint8

const (
	looking   purpose    = iota // a read that a user asked for
	loading                     // a read of a campaign or a leader
	swapping                    // a write of a campaign or a leader
	asking                      // a write into another process's record: see extend
	examining                   // a call of Options.Healthy
	watching                    // not counted: it is meant to last
	attending                   // the same
	countedTo = watching        // the purposes below
)

// String returns the Op of RequestInfo.
func (p purpose) String() string {
	return [...]string{"load", "load", "swap", "swap", "healthy", "watch", "watch-presence"}[p]
}
