package demo

import (
	"encoding/json"
	"io"
	"time"

	"github.com/elector-go/elector"
)

// ttl is short, to keep the demo short. The rest follows by the rules and
// defaults of package elector.
const (
	ttl        = 2 * time.Second
	hold       = ttl - ttl/10 // how long a holder trusts its lease: H
	challenge  = ttl + ttl/10 // how long a challenger waits: C
	renewEvery = hold / 3
	request    = renewEvery / 2         // the longest that a request may take
	jitter     = 250 * time.Millisecond // the longest random wait before a takeover: J

	takeoverLimit = challenge + renewEvery + request + jitter
	handoverLimit = time.Second
)

// What an Event tells. The first group comes from the children, the second is
// what the demo does to them, or sees.
const (
	waits   = "waits"   // a candidate has seen somebody else's record
	leads   = "leads"   // the worker was started with a new lease
	about   = "about"   // Check has succeeded and the write comes next
	wrote   = "wrote"   // the journal took the write
	refused = "refused" // the journal refused the write as stale
	failed  = "failed"  // the write failed for another reason
	renewed = "renewed" // the lease was renewed
	ended   = "ended"   // the lease is over, the store has not been told

	started    = "started"
	killed     = "killed"     // SIGKILL
	stopped    = "stopped"    // SIGSTOP
	continued  = "continued"  // SIGCONT
	terminated = "terminated" // SIGTERM
	exited     = "exited"     // Detail says why if it was not in order
)

// An Event is what happened in or to one process, and for those that a child
// tells, what its lease looked like right then.
type Event struct {
	Process string        // A, B, …
	Kind    string        // see above
	Boot    time.Duration // when, on a clock that all processes of the machine share
	Token   elector.Token
	Valid   bool          // Check succeeded
	Left    time.Duration // Remaining, just before Boot
	Invoice int
	Detail  string
}

// readEvents takes the events that a child prints, until it ends.
func readEvents(process string, r io.Reader, take func(Event)) error {
	for d := json.NewDecoder(r); ; {
		var e Event
		switch err := d.Decode(&e); err {
		case nil:
			e.Process = process
			take(e)
		case io.EOF, io.ErrUnexpectedEOF: // killed, maybe in the middle of a line
			return nil
		default:
			return err
		}
	}
}
