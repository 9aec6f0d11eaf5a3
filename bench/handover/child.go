package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/child"
)

// childVariable makes a program that calls Main a leader: an environment
// variable with a task.
const childVariable = "ELECTOR_HANDOVER_LEADER"

// A task tells a leader what to do.
type task struct {
	Library, Store string
	Config         peers.Config
}

// leads is what a leader tells when it does.
const leads = "leads"

// Main makes this process a leader that is to be killed, if Measure has started
// it for that, and returns true when it has ended; or exits with a status of 1.
// Otherwise it returns false at once. Call it first in main.
func Main() bool { return leaderMain(peers.All()) }

func leaderMain(libraries []peers.Library) bool {
	var t task
	is, err := child.Task(childVariable, &t)
	if is && err == nil {
		err = lead(t, libraries, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return is
}

// lead campaigns, tells that it leads, and leads until its input ends.
func lead(t task, libraries []peers.Library, in io.Reader, out io.Writer) error {
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		io.Copy(io.Discard, in)
		end(errors.New("the program that started this one has ended"))
	}()
	for _, l := range libraries {
		if l.Name != t.Library || l.Store != t.Store {
			continue
		}
		opening, opened := context.WithTimeout(ctx, time.Minute)
		defer opened()
		c, err := l.Open(opening, t.Config)
		if err != nil {
			return err
		}
		if err := c.Campaign(ctx); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(leads); err != nil {
			return err
		}
		<-ctx.Done()
		return nil // without Close: a killed one does not get to that either
	}
	return fmt.Errorf("there is no library %q on %s", t.Library, t.Store)
}

// A leader is a process that leads.
type leader struct {
	*child.Again
	leads chan struct{} // closed when it does
}

// start starts this program again, as a leader.
func start(t task) (p *leader, err error) {
	p = &leader{leads: make(chan struct{})}
	p.Again, err = child.StartAgain(childVariable, t, func(told string) {
		if told == leads {
			close(p.leads)
		}
	})
	return p, err
}

// elected blocks until the process leads.
func (p *leader) elected(ctx context.Context) error {
	select {
	case <-p.leads:
		return nil
	case <-p.Ended():
		return p.gone()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first leader: %w%s", context.Cause(ctx), p.Printed())
	}
}

func (p *leader) gone() error {
	return fmt.Errorf("the leader's process has ended by itself%s", p.Printed())
}
