package shortage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
)

// taskVariable makes this program a child: an environment variable with a task.
const taskVariable = "ELECTOR_SHORTAGE_TASK"

// A task tells a child what to do: to lead elections, of which some begin at a time.
type task struct {
	URL       string
	Elections int
	AtATime   int
	Prefix    string        // of the elections' names
	Limit     time.Duration // after which the child ends in any case
}

// A sight is what a child reports each second. What it counts begins anew with
// each line of its input.
type sight struct {
	Phase      int // how many lines of input it had
	Led        int // now
	Least      int // workers at a time
	Goroutines int
	Processor  time.Duration // used so far
	Allocated  uint64        // objects so far
	Ended      int           // leases
	Requests   Requests
	Logged     Logged
	Error      string `json:",omitempty"`
}

// Main is the main function of a child. It returns false if this process is none.
func Main() bool {
	var t task
	is, err := child.Task(taskVariable, &t)
	if !is {
		return false
	}
	out := json.NewEncoder(os.Stdout)
	if err == nil {
		err = t.run(os.Stdin, func(s sight) { out.Encode(s) })
	}
	if err != nil {
		out.Encode(sight{Error: err.Error()})
		os.Exit(1)
	}
	return true
}

// run tells its first sight when all is ready, begins the elections at the first line of
// its input, and ends when the input ends, or after the limit.
func (t task) run(input io.Reader, tell func(sight)) error {
	ctx, cancel := context.WithTimeout(context.Background(), t.Limit)
	defer cancel()
	c, err := t.open(ctx)
	if err != nil {
		return err
	}
	phases := make(chan bool)
	go func() {
		defer close(phases)
		for lines := bufio.NewScanner(input); lines.Scan(); {
			select {
			case phases <- true:
			case <-ctx.Done():
				return
			}
		}
	}()
	tell(c.look())
	tick := time.NewTicker(time.Second) // a look takes some of what there is too little of
	defer tick.Stop()
	for phase := 0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("it has run for %v, which is as long as it may", t.Limit)
		case _, more := <-phases:
			if !more {
				return nil
			}
			c.reset()
			if phase++; phase == 1 {
				go c.campaign(ctx, t.AtATime)
			}
		}
		s := c.look()
		s.Phase = phase
		tell(s)
	}
}
