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

// A Command is what to run, and when to end it.
type Command struct {
	Path string   // of the program
	Argv []string // the name of the program first
	Env  []string

	Deadline Moment        // the end of the lease
	Kill     time.Duration // so long before the deadline all are killed
	Grace    time.Duration // so long before that the command gets SIGTERM
}

// An order is what the wrapper tells the guardian. The first has the Command.
type order struct {
	Start    *Command       `json:",omitempty"`
	Group    int            `json:",omitempty"` // with Start: the process group of the command
	Deadline Moment         `json:",omitempty"`
	Signal   syscall.Signal `json:",omitempty"` // for the command
	Stop     *time.Duration `json:",omitempty"` // SIGTERM now, and SIGKILL to all after this
}

// A report is what the guardian tells the wrapper.
type report struct {
	Started int     `json:",omitempty"` // the command's process id
	Failed  string  `json:",omitempty"` // why it could not be started
	Errno   int     `json:",omitempty"` // with Failed
	Event   string  `json:",omitempty"` // for people
	Exit    *Status `json:",omitempty"` // the command has ended
	Empty   bool    `json:",omitempty"` // no descendant is left; the last report
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
