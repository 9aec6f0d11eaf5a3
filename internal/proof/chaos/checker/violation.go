package checker

import (
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// TooEarly is the part of mx/takeover-bound that is for safety: a takeover
// before the holder's lease was over.
const TooEarly = "mx/takeover-bound: too early"

// NotBack is the rule that an election has a leader that writes soon after all faults have
// ended, and each partition of a group an owner.
const NotBack = "live/back"

// A Violation is a rule that a history breaks beyond doubt. If Rule is
// Undecided, it is a check that could not be brought to its end.
type Violation struct {
	Election string          // its name
	Rule     string          // the case, "mx/two-valid" for example
	Text     string          // what is wrong, with the guarantee's number
	At       time.Duration   // when it was broken, on BootTime
	Events   []history.Event // few events of the election that show the same, in their order
}

// A Class says what a violation is about.
type Class string

const (
	Safety   Class = "safety"      // two leaders, a stale write, or what may lead to them
	Progress Class = "progress"    // no candidate led for too long, or a candidate gave up
	Account  Class = "the account" // no guarantee is seen broken, but what was told does not fit together
)

// Class returns what the violation is about.
func (v Violation) Class() Class {
	switch v.Rule {
	case Linearizable, Undecided:
		return Account
	case "mx/takeover-bound", NotBack, GaveUp, "bad/garbage", "auth/denied":
		return Progress
	}
	return Safety
}

// String prints the violation and the events that show it, with times from the
// first of them.
func (v Violation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s (%s): %s\n", v.Election, v.Rule, v.Class(), v.Text)
	for _, e := range v.Events {
		first := v.Events[0].At
		e.At -= first
		e.Before -= first
		fmt.Fprintf(&out, "  %v%s\n", e, mark(e))
	}
	return out.String()
}

// mark adds what an event's own text leaves out.
func mark(e history.Event) string {
	if isLook(e.Kind) && !e.Valid {
		return " not valid"
	}
	return ""
}
