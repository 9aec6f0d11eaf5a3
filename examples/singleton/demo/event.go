package demo

import (
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/examples/internal/stage"
)

// rules are a TTL and what follows from it by the rules and defaults of package
// elector.
type rules struct {
	ttl        time.Duration
	hold       time.Duration // how long a holder trusts its lease: H
	challenge  time.Duration // how long a challenger waits: C
	renewEvery time.Duration // and how often at least a waiter reads
	request    time.Duration // the longest that a request may take

	takeover time.Duration // a takeover that takes longer is late: tau
	handover time.Duration // a handover that takes longer is late
}

// shortest is the TTL of the demo, unless the store wants a longer one: short,
// to keep the demo short.
const shortest = 2 * time.Second

// rulesOf returns the rules on a store. Where it pushes changes, waiters learn
// of a handover at once, otherwise with their next read.
func rulesOf(d backends.Description, pushes bool) rules {
	const jitter = 250 * time.Millisecond // the longest random wait before a takeover: J
	r := rules{ttl: max(shortest, d.MinTTL)}
	r.hold, r.challenge = r.ttl-r.ttl/10, r.ttl+r.ttl/10
	r.renewEvery = max(r.hold/3, d.MinWriteInterval)
	r.request = r.renewEvery / 2
	r.takeover = r.challenge + r.renewEvery + r.request + jitter
	r.handover = time.Second + d.MinWriteInterval // which a release waits for
	if !pushes {
		r.handover += r.renewEvery
	}
	return r
}

// Kinds of events. The first group comes from the children, the second is what
// the demo does to them, or sees.
const (
	opened  = "opened"    // the store has answered and the campaign begins
	asked   = "asked"     // a request to the store was answered or given up
	waits   = "waits"     // a candidate has seen the record of another process
	leads   = "leads"     // the worker was started with a new lease
	about   = "about"     // Check has succeeded and the write comes next
	wrote   = "wrote"     // the journal took the write
	refused = "refused"   // the journal refused the write as stale
	failed  = "failed"    // the write failed for another reason
	renewed = "renewed"   // the lease was renewed
	ended   = stage.Ended // the lease is over, the store has not been told; Detail says whether it was lost

	started    = stage.Started
	killed     = stage.Killed
	stopped    = stage.Stopped
	continued  = stage.Continued
	terminated = stage.Terminated
	exited     = stage.Exited
)

// lost is the detail of an ended lease that was lost, and not resigned.
const lost = "lost"

// An Event is what happened to a candidate. Its number is that of an invoice.
type Event = stage.Event
