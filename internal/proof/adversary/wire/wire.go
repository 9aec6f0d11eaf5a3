// Package wire is what the adversary and the leaders that it stops say to each other.
package wire

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Task is what one candidate needs to know.
type Task struct {
	Kind      string // of the data: Etcd and so on
	URL       string // of the election's store
	Data      string // where the data is
	Election  string
	Candidate string
	TTL       time.Duration
	Points    []string // where it is to stop
	Seed      uint64
}

// The kinds of data, by what guards them.
const (
	Etcd     = "etcd"     // etcd.Commit
	Postgres = "postgres" // postgres.Transact and TransactDB
	SQL      = "fencesql" // fencesql.Table.Transact
	Fence    = "Fence"    // an elector.Fence at the door of a service
)

// None is the point of a write that no stop is meant for.
const None = "none"

// The points at which a leader stops. Which there are depends on the kind.
const (
	Check    = "check"    // between Check and the write
	Guard    = "guard"    // the write is made and not committed, or the condition is made and not sent
	Entered  = "entered"  // the token is admitted, nothing is written
	Guarded  = "guarded"  // the guard has answered, nothing is committed
	Admitted = "admitted" // a service has admitted the write and not made it
	Drain    = "drain"    // between Check and the write, after the worker was told to stop
	Release  = "release"  // in a handover, before the release is sent
	Released = "released" // in a handover, after the release was answered
	Renew    = "renew"    // before a renewal is sent
	Renewed  = "renewed"  // after a renewal was answered, before it counts
)

// Points describes them for people.
var Points = map[string]string{
	None:     "no stop",
	Check:    "between Check and the write",
	Guard:    "before the guard, in the write",
	Entered:  "between the token's admission and the write",
	Guarded:  "between the guard and the commit",
	Admitted: "in the service, between admission and the write",
	Drain:    "in a drain, between Check and the write",
	Release:  "in a handover, before the release",
	Released: "in a handover, after the release",
	Renew:    "before a renewal",
	Renewed:  "between a renewal's answer and belief",
}

// A Message is one that a leader prints.
type Message struct {
	Kind     string // Wrote, Trouble, Stops or Went
	Token    uint64
	Point    string
	Outcome  string // of the late guarded write, in Went
	Error    string // of it, or of another write, in Trouble
	Believed bool   // Check had no error right after the stop, in Went
}

// The kinds of messages, and the outcomes of a guarded write.
const (
	Wrote   = "wrote"   // a guarded and a plain write
	Trouble = "trouble" // a write without a stop has failed
	Stops   = "stops"   // it stops itself now
	Went    = "went"    // it has made its late writes after a stop

	Committed = "committed"
	Refused   = "refused"
	Failed    = "failed"
)

// A Write is one to the data.
type Write struct {
	Token uint64
	Point string
}

func (w Write) String() string { return fmt.Sprintf("%d %s", w.Token, w.Point) }

// Parse reads a Write's text.
func Parse(text string) (w Write, err error) {
	if _, err = fmt.Fscan(strings.NewReader(text), &w.Token, &w.Point); err != nil {
		err = fmt.Errorf("%q in the data is no write: %w", text, err)
	}
	return w, err
}

const variable = "ELECTOR_ADVERSARY_TASK"

// Environment returns the variable that gives the task to a process.
func (t Task) Environment() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // it has nothing that JSON could not say
	}
	return variable + "=" + string(text)
}

// FromEnvironment returns the task of this process.
func FromEnvironment() (t Task, err error) {
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &t); err != nil {
		return t, fmt.Errorf("%s holds no task: %w; this program is started by the tests of adversary, not by hand", variable, err)
	}
	return t, nil
}
