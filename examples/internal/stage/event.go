package stage

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/clock"
)

// An Event is what happened in or to one process, and if a child reports it,
// what its lease looked like right then.
type Event struct {
	Process   string        // A, B, …
	Kind      string        // see below; a demo has more of its own
	Boot      time.Duration // when, on a clock that all processes of the machine share
	Partition int           `json:",omitzero"`
	Token     elector.Token `json:",omitzero"` // 0 is no token to its decoder
	Valid     bool          // Check succeeded
	Left      time.Duration // Remaining, read between Boot and Boot + Within
	Within    time.Duration // the process may have been paused while it looked
	Number    int           // of what it writes
	Detail    string
}

// Kinds of events. A child reports the first, the stage the others.
const (
	Ended = "ended" // the process no longer relies on its lease

	Started    = "started"
	Killed     = "killed"     // SIGKILL
	Stopped    = "stopped"    // SIGSTOP
	Continued  = "continued"  // SIGCONT
	Terminated = "terminated" // SIGTERM
	Exited     = "exited"     // Detail says why if it was not in order
)

// A Lease is an *elector.Lease or a *partition.Lease.
type Lease interface {
	Token() elector.Token
	Check() error
	Remaining() time.Duration
}

// Look describes the lease as it is now.
func Look(kind string, lease Lease) Event {
	e := Event{Kind: kind, Token: lease.Token(), Boot: clock.Shared()}
	e.Valid, e.Left = lease.Check() == nil, lease.Remaining()
	e.Within = clock.Shared() - e.Boot
	return e
}

// A Reporter is a child's side: it prints events for the stage to read.
type Reporter struct {
	mutex sync.Mutex
	out   *json.Encoder
}

// NewReporter returns a Reporter that prints to w.
func NewReporter(w io.Writer) *Reporter { return &Reporter{out: json.NewEncoder(w)} }

// Report prints an event. If the stage is gone, so is this process.
func (r *Reporter) Report(e Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.out.Encode(e)
}

// readEvents passes on the events that a child prints, until it ends.
func readEvents(process string, r io.Reader, take func(Event)) error {
	for d := json.NewDecoder(r); ; {
		var e Event
		switch err := d.Decode(&e); {
		case err == nil:
			e.Process = process
			take(e)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // killed, maybe in the middle of a line
			return nil
		default:
			return err
		}
	}
}

// InOrder returns the events as they happened, and not as they were reported.
func InOrder(events []Event) []Event {
	return slices.SortedStableFunc(slices.Values(events), func(a, b Event) int { return cmp.Compare(a.Boot, b.Boot) })
}
