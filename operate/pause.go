package operate

import (
	"fmt"
	"strconv"
	"time"
)

// A Pause describes a pause of an election.
type Pause struct {
	Reason string        // for people; at most 256 bytes
	For    time.Duration // 0 until Resume; see Operator.Pause
	By     string        // ID of the process that has paused, at most 64 bytes of it; Operator.Pause sets it
}

// String describes the pause in an error.
func (p Pause) String() string {
	s := fmt.Sprintf("by %q", p.By)
	if p.For > 0 {
		s += fmt.Sprintf(" for %v", p.For)
	}
	if p.Reason != "" {
		s += ": " + strconv.Quote(p.Reason)
	}
	return s
}
