package groups

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
)

// memberVariable makes this program a member: an environment variable with a task.
const memberVariable = "ELECTOR_GROUPS_MEMBER"

// A task tells a member what to do.
type task struct {
	Subject    string
	URL        string // of the store; of a broker its address
	Group, ID  string
	IDs        []string // of all that may be members
	Partitions int
	TTL        time.Duration
}

// Main makes this process a member, if Measure has started it for that, and returns true
// when it has left; or exits with a status of 1. Otherwise it returns false at once. Call
// it first in main.
func Main() bool {
	var t task
	is, err := child.Task(memberVariable, &t)
	if is && err == nil {
		err = member(t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return is
}

// member takes part in a group until its input ends, and leaves then.
func member(t task) error {
	s, ok := find(t.Subject)
	if !ok {
		return fmt.Errorf("there is no subject %q", t.Subject)
	}
	j := newJournal(os.Stdout, history.BootTime)
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	go func() {
		for tick := time.NewTicker(pause / 5); ; <-tick.C {
			j.sweep()
		}
	}()
	err := s.join(ctx, t, j)
	if ctx.Err() == nil && err == nil {
		err = fmt.Errorf("member %s has left by itself", t.ID)
	}
	if err != nil {
		j.fail(err)
	}
	return err
}
