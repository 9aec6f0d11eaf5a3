// Package history is the language in which candidates, the resource that they
// write to, and the campaign that injects faults report what happened, and when. A
// history is checked by package checker and drawn by package report.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/setup"
)

// A History is what happened in some elections.
type History struct {
	Elections []Election
	Events    []Event // in the order of At, see Sort
}

// An Election is one name in one store. A partition of a group is one too.
type Election struct {
	Store string // the kind of store, "etcd 3 nodes" for a cluster
	Name  string // unique in a history
	Group string `json:",omitempty"` // the group whose partition it is; empty for an election of its own
	Rules Rules
}

// Rules are a TTL and what follows from it by the defaults of package elector,
// for clocks that may err by a tenth.
type Rules struct {
	TTL      time.Duration
	Hold     time.Duration // how long a holder trusts its lease: H
	Wait     time.Duration // how long a challenger waits: C
	Renew    time.Duration // the time between renewals, and between a waiter's reads
	Request  time.Duration // the longest that a request takes
	Takeover time.Duration // from the end of a holder that crashed to the next leader, at most: tau
	Back     time.Duration // from the end of the last fault to a leader that writes, at most: B

	// Audit is how long the owner of a partition trusts what it last saw of its
	// record: A. It is 0 for an election.
	Audit time.Duration `json:",omitempty"`
}

// RulesOf returns the rules for candidates that set nothing but the TTL, on a
// store of one host that allows a write each interval.
func RulesOf(ttl, interval time.Duration) Rules {
	const jitter = 250 * time.Millisecond // the longest random wait before a takeover: J
	r := Rules{TTL: ttl, Hold: ttl - ttl/10, Wait: ttl + ttl/10}
	r.Renew = max(r.Hold/3, interval)
	r.Request = r.Renew / 2
	r.Takeover = r.Wait + r.Renew + r.Request + jitter
	return r.On(1)
}

// On returns the rules for a store of so many hosts: Back is the wait for the lease of a
// holder that is gone, then the longest pause of a retry, a connection to each host in turn,
// and one poll.
func (r Rules) On(hosts int) Rules {
	over := r.Wait
	if r.Audit > 0 { // whichever members of a group are gone
		over = max(r.Takeover, 3*r.Wait)
	}
	r.Back = over + r.Renew + time.Duration(hosts)*setup.Patience + r.Renew
	return r
}

// RulesOfGroup returns the rules for the partitions of a group whose members set
// nothing but the TTL, and whose audit bound is so many TTLs.
func RulesOfGroup(ttl, interval time.Duration, audit int) Rules {
	r := RulesOf(ttl, interval)
	r.Audit = time.Duration(audit) * ttl
	// The last deputy reads the seats once in three intervals, and takes over a seat
	// three quarters of one after the others would. Then come the plan and the swap,
	// each with a read of what was before.
	r.Takeover = r.Wait + 8*r.Renew
	return r.On(1)
}

// Missing is how much later a partition has an owner whose record was deleted, or
// put back, than one whose record is there: until its owner's audit, and then until
// others may take it.
func (r Rules) Missing() time.Duration { return r.Audit*4/10 + r.Audit*11/10 }

// A Kind is what an Event tells.
type Kind string

// IsFailure reports whether it tells that a request to the store failed.
func (k Kind) IsFailure() bool { return k == Trouble || k == Denied || k == Foreign }

// A candidate tells these of itself.
const (
	Opened   Kind = "opened"   // the store has answered and the campaign begins
	Waits    Kind = "waits"    // it sees the record of Holder for the first time since it led or saw another's
	Acquired Kind = "acquired" // it leads: Token, Valid, Left
	Renewed  Kind = "renewed"  // the lease was renewed: Token, Valid, Left
	Checked  Kind = "checked"  // Check was called: Token, Valid, Left
	Ended    Kind = "ended"    // the lease is over, the store has not been told: Token; Detail is "lost: …" or "resigned: …"
	Canceled Kind = "canceled" // the lease's context is done, as its worker sees it: Token
	Released Kind = "released" // the store was told: Token; Detail is the error if it could not be
	Trouble  Kind = "trouble"  // a request to the store failed, and none of the next two: Detail
	Denied   Kind = "denied"   // the store refused a request, for want of a right, or as one that takes no writes: Detail; Before is when the request began
	Foreign  Kind = "foreign"  // a request found that the record is none: as Denied
	Observed Kind = "observed" // a fresh read of the record was answered: Token and Holder; no Holder is a vacancy
	Writing  Kind = "writing"  // Check has succeeded and the write comes next: Token, Number, Valid, Left
	Wrote    Kind = "wrote"    // the resource took the write: Token, Number
	Refused  Kind = "refused"  // the resource refused the write as stale: Token, Number
	Failed   Kind = "failed"   // the write failed for another reason, it may have been done: Token, Number, Detail
	Stalled  Kind = "stalled"  // this process, or the machine, stood still for Left until At
	Fatal    Kind = "fatal"    // the candidate gives up: Detail

	// What became of a write to data in the store, through its guard: Token,
	// Number; Before is when it was sent.
	Committed Kind = "committed" // the store took it
	Stale     Kind = "stale"     // the guard refused it
	Doubtful  Kind = "doubtful"  // it failed for another reason, it may have been done: Detail

	// The store applied a swap of this candidate, Token, and the candidate does
	// not believe it: it does not lead. Detail is the reason.
	Discarded Kind = "disbelieved"
)

// The resource tells these; its order is that of their At.
const (
	Accepted Kind = "accepted" // a write of Candidate was taken: Token, Number
	Rejected Kind = "rejected" // a write of Candidate was refused: Token, Number
)

// The campaign reports these about a candidate, or about the store if
// Candidate is empty. Before is when it began to do so, At when it was done.
const (
	Started    Kind = "started"    // a process
	Killed     Kind = "killed"     // SIGKILL
	Stopped    Kind = "stopped"    // SIGSTOP
	Continued  Kind = "continued"  // SIGCONT
	Terminated Kind = "terminated" // SIGTERM
	Exited     Kind = "exited"     // the process was waited for; Detail is empty if it ended in order
	Fault      Kind = "fault"      // something else was broken: Detail is the kind of fault, one of a campaign's list
	Healed     Kind = "healed"     // and mended: Detail is the same
	Removed    Kind = "removed"    // the record was deleted behind everybody's back
	Restored   Kind = "restored"   // an older state of the record was written back: Token, Holder
	Spoiled    Kind = "spoiled"    // the record was replaced by garbage
	Edited     Kind = "edited"     // one thing in the record was changed by hand: Detail is what, see the constants below; Token and Holder are what the record has then
	Shown      Kind = "shown"      // the record was read behind everybody's back: Token, Holder; Detail is its extensions

	// Nothing is broken from now on, until something is told to be. An election has a
	// leader that writes within Left, and each partition of a group an owner.
	Quiet Kind = "quiet"

	// A guarded write of Candidate stands in the data: Token, Number. All of an
	// election are told at its end, in the store's own order.
	Kept Kind = "kept"
)

// What the Detail of an Edited event is, unless it was an extension: then it is
// what [Extension] returns.
const (
	EditedHolder   = "holder"
	EditedTTL      = "ttl" // Left is what it was changed to
	EditedInterval = "interval"
	EditedValue    = "value"
)

// Extension is the Detail of an Edited event: an extension was set, or removed if
// the value is empty.
func Extension(name, value string) string { return name + "=" + value }

// An Event is what happened in or to one candidate, or to the store.
type Event struct {
	Election  string        // its name
	Candidate string        `json:",omitempty"` // A, B, …; a new process is a new candidate
	Kind      Kind          // what happened
	Before    time.Duration // on BootTime, read before what is told was begun, or read from the lease
	At        time.Duration // on BootTime, read after it
	Token     elector.Token `json:",omitzero"`
	Holder    string        `json:",omitempty"` // a candidate
	Valid     bool          `json:",omitzero"`  // Check succeeded between Before and At
	Left      time.Duration `json:",omitzero"`  // what Remaining returned between Before and At
	Number    uint64        `json:",omitzero"`  // of a write, unique for its candidate
	Detail    string        `json:",omitempty"`
}

// Extension returns the extension that an Edited event is about; ok is false if
// it is about another field.
func (e Event) Extension() (name, value string, ok bool) { return strings.Cut(e.Detail, "=") }

func (e Event) String() string {
	s := fmt.Sprintf("%12.6f  %-4s %-10s", e.At.Seconds(), e.Candidate, e.Kind)
	if e.Token != 0 {
		s += fmt.Sprintf(" token %v", e.Token)
	}
	if e.Holder != "" {
		s += " of " + e.Holder
	}
	if e.Number != 0 {
		s += fmt.Sprintf(" write %d", e.Number)
	}
	if e.Left != 0 {
		s += fmt.Sprintf(" left %v", e.Left)
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// Sort puts the events into the order in which they were told.
func (h *History) Sort() {
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}

// Of returns the events of one election, in their order.
func (h *History) Of(election string) (events []Event) {
	for _, e := range h.Events {
		if e.Election == election {
			events = append(events, e)
		}
	}
	return events
}
