package groups

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A message is a line that a member prints.
type message struct {
	Kind      string
	View      view          `json:",omitempty"`
	Partition int           `json:",omitempty"`
	At        time.Duration `json:",omitempty"` // on the machine's boot-time clock
	Error     string        `json:",omitempty"`
}

// Kinds of messages.
const (
	began  = "began" // a stretch
	ended  = "ended"
	failed = "failed"
)

// A view is what counts as work on a partition.
type view string

const (
	units view = "units" // units of work that were done
	holds view = "holds" // the time for which the library has the member hold the partition
)

const (
	// unit is how long a unit of work takes.
	unit = 10 * time.Millisecond

	// pause is the longest time between two units of one stretch. Work that waits for
	// records has none for a while when the broker is out of reach.
	pause = 250 * time.Millisecond
)

// A journal prints what a member works on.
type journal struct {
	now  func() time.Duration
	work func() // a unit

	mutex   sync.Mutex
	encoder *json.Encoder
	open    map[int]*entry // by partition
}

// An entry is a stretch of units that has not ended.
type entry struct {
	last time.Duration // when the latest unit ended
	busy bool          // a unit is under way
}

func newJournal(w io.Writer, now func() time.Duration) *journal {
	return &journal{now: now, work: func() { time.Sleep(unit) }, encoder: json.NewEncoder(w), open: map[int]*entry{}}
}

// print prints a message. It is called with the mutex.
func (j *journal) print(m message) { j.encoder.Encode(m) } // an error means that the parent has ended

// unit does a unit of work on a partition.
func (j *journal) unit(partition int) {
	j.mutex.Lock()
	now := j.now()
	e := j.open[partition]
	if e != nil && now > e.last+pause {
		j.end(partition)
		e = nil
	}
	if e == nil {
		e = &entry{}
		j.open[partition] = e
		j.print(message{Kind: began, View: units, Partition: partition, At: now})
	}
	e.busy = true
	j.mutex.Unlock()

	j.work()

	j.mutex.Lock()
	defer j.mutex.Unlock()
	e.busy, e.last = false, j.now()
}

// rest ends the stretch of units on a partition, if there is one: the worker has returned.
func (j *journal) rest(partition int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.open[partition] != nil {
		j.end(partition)
	}
}

func (j *journal) end(partition int) {
	j.print(message{Kind: ended, View: units, Partition: partition, At: j.open[partition].last})
	delete(j.open, partition)
}

// sweep ends the stretches whose latest unit was long ago.
func (j *journal) sweep() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for partition, e := range j.open {
		if !e.busy && j.now() > e.last+pause {
			j.end(partition)
		}
	}
}

// holds notes that the member holds a partition from now on, or does no more.
func (j *journal) holds(partition int, kind string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.print(message{Kind: kind, View: holds, Partition: partition, At: j.now()})
}

func (j *journal) fail(err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.print(message{Kind: failed, Error: err.Error()})
}
