package partition

import (
	"fmt"
	"strings"

	"github.com/elector-go/elector/backends"
)

// A note is what a member publishes as the value of its seat.
type note struct {
	leaving    bool
	planned    bool // it has seen a plan of the group
	partitions int
	weight     int
	whole      string // the plan of whose partitions it has seen all records: see founding; may be empty
	value      string // Options.Elector.Value
}

// noteForm is the form of the text.
const noteForm = "1"

// String returns the text of the note.
func (m note) String() string {
	state, seen, whole := "ready", "new", m.whole
	if m.leaving {
		state = "leaving"
	}
	if m.planned {
		seen = "planned"
	}
	if whole == "" {
		whole = "-"
	}
	return fmt.Sprintf("%s %s %s %d %d %s %s", noteForm, state, seen, m.partitions, m.weight, whole, m.value)
}

// maxValue bounds Options.Elector.Value: the rest of the seat's value is the member's note.
const maxValue = backends.MaxText - 96

// parseNote returns the note of a seat's holder. It returns false if there is none: the
// seat is vacant, its holder has not written a second time, or it is no member.
func parseNote(r backends.Record) (m note, ok bool) {
	fields := strings.SplitN(r.Value, " ", 7)
	if r.Vacant() || len(fields) != 7 || fields[0] != noteForm {
		return note{}, false
	}
	m = note{leaving: fields[1] == "leaving", planned: fields[2] == "planned", partitions: number(fields[3]), weight: number(fields[4]), value: fields[6]}
	if fields[5] != "-" {
		m.whole = fields[5]
	}
	return m, m.String() == r.Value && m.partitions >= 1 && m.weight >= 1 && m.weight <= maxWeight
}
