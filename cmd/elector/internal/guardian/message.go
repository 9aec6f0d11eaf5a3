//go:build unix

package guardian

import (
	"syscall"
	"time"
)

// A Moment is a time since boot, suspends included.
type Moment time.Duration

// Add returns m+d.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Until returns how long it is until m, below 0 if it has passed.
func (m Moment) Until() time.Duration { return time.Duration(m - Now()) }

// never is later than all that happens.
const never = Moment(1<<63 - 1)

// A Command is what to run, and when to end it. The guardian gets its texts as
// arguments and environment of its own, because these need not be UTF-8.
type Command struct {
	Path  string   `json:"-"` // of the program
	Argv  []string `json:"-"` // the name of the program first
	Env   []string `json:"-"`
	Group int      // the process group to run in; 0 for a group of its own

	Isolate bool // run the command in a PID namespace of its own: see Isolates

	Deadline Moment        // the end of the lease
	Kill     time.Duration // so long before the deadline all are killed
	Grace    time.Duration // so long before that the command gets SIGTERM
}

// An order is what the wrapper tells the guardian. The first has the Command.
type order struct {
	Start    *Command       `json:",omitempty"`
	Deadline Moment         `json:",omitempty"`
	Signal   syscall.Signal `json:",omitempty"` // for the command
	Stop     *time.Duration `json:",omitempty"` // SIGTERM now, and SIGKILL to all after this
}

// A report is what the guardian tells the wrapper.
type report struct {
	Started int           `json:",omitempty"` // the command's process id
	Failed  string        `json:",omitempty"` // why it was not started
	Errno   syscall.Errno `json:",omitempty"` // with Failed, if the system refused the command
	Event   string        `json:",omitempty"` // for people
	Overdue bool          `json:",omitempty"` // the command must end because the deadline is near
	Exit    *Status       `json:",omitempty"` // the command has ended
	Empty   bool          `json:",omitempty"` // no descendant is left; the last report
}

// A Status is how a command ended.
type Status struct {
	Code   int            // its exit code, if no signal ended it
	Signal syscall.Signal // that ended it, or 0
}

// ExitCode returns the code as shells have it: 128 + n for signal n.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}
