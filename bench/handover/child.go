package handover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/stores"
)

// childVariable makes a program that calls Main a leader: an environment
// variable with a task.
const childVariable = "ELECTOR_HANDOVER_LEADER"

// A task tells a leader what to do.
type task struct {
	Library, Store string
	Config         peers.Config
}

// leads is the line that a leader prints when it does.
const leads = "leads"

// Main makes this process a leader that is to be killed, if Measure has started
// it for that, and returns true when it has ended; or exits with a status of 1.
// Otherwise it returns false at once. Call it first in main.
func Main() bool { return child(peers.All()) }

func child(libraries []peers.Library) bool {
	line := os.Getenv(childVariable)
	if line == "" {
		return false
	}
	if err := lead(line, libraries, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// lead campaigns, tells that it leads, and leads until its input ends.
func lead(line string, libraries []peers.Library, in io.Reader, out io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(line), &t); err != nil {
		return err
	}
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
		if _, err := fmt.Fprintln(out, leads); err != nil {
			return err
		}
		<-ctx.Done()
		return nil // without Close: a killed one does not get to that either
	}
	return fmt.Errorf("there is no library %q on %s", t.Library, t.Store)
}

// A leader is a process that leads.
type leader struct {
	cmd   *exec.Cmd
	input io.WriteCloser // ends the process when it is closed, as it is when we end
	log   *tail
	leads chan struct{} // closed when it does
	ended chan struct{} // closed when it has
}

// start starts this program again, as a leader.
func start(t task) (*leader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	p := &leader{cmd: exec.Command(self), log: &tail{}, leads: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(line))
	p.cmd.Stderr = p.log
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := stores.StartProcess(p.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		defer p.cmd.Wait() // all that it printed as errors is there then too
		told := false
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if lines.Text() == leads && !told {
				told = true
				close(p.leads)
			}
		}
	}()
	return p, nil
}

// elected blocks until the process leads.
func (p *leader) elected(ctx context.Context) error {
	select {
	case <-p.leads:
		return nil
	case <-p.ended:
		return p.gone()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first leader: %w%s", context.Cause(ctx), p.log)
	}
}

func (p *leader) gone() error {
	return fmt.Errorf("the leader's process has ended by itself%s", p.log)
}

// kill ends the process at once, with SIGKILL.
func (p *leader) kill() error { return p.cmd.Process.Kill() }

// end ends the process if it has not ended, and waits until it has.
func (p *leader) end() {
	p.kill() // says so if it has ended
	<-p.ended
	p.input.Close()
}

// A tail keeps the last that was written to it.
type tail struct {
	mutex sync.Mutex
	kept  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-2000):]
	return len(b), nil
}

// printed comes before what a process printed.
const printed = "; it printed:"

// String is the end of an error.
func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	said := strings.TrimSpace(string(t.kept))
	if said == "" {
		return ""
	}
	return printed + "\n\t" + strings.ReplaceAll(said, "\n", "\n\t")
}
