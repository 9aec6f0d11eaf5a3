package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/elector-go/elector/bench/peers"
)

// A process is a candidate: a process of its own.
type process struct {
	name  string
	cmd   *exec.Cmd
	input io.WriteCloser
	log   *tail

	mutex    sync.Mutex
	runs     []run // the last one is complete only when the process was ended
	open     bool  // the last run has not ended
	renewal  []byte
	events   map[string]chan struct{} // closed when a message of the kind has come
	err      error                    // what it said when it failed
	lost     string                   // why it last ceased to believe, if it knows
	finished chan struct{}            // closed when it has ended
}

// start starts this program again, as a candidate.
func start(l peers.Library, c peers.Config) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(task{l.Name, l.Store, c})
	if err != nil {
		return nil, err
	}
	p := &process{name: c.ID, cmd: exec.Command(self), log: &tail{}, finished: make(chan struct{}), events: map[string]chan struct{}{}}
	for _, kind := range []string{campaigns, leads, began, ended, lasts, failed} {
		p.events[kind] = make(chan struct{})
	}
	p.cmd.Env = append(os.Environ(), candidateVariable+"="+string(line))
	p.cmd.Stderr = p.log
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(output)
	return p, nil
}

func (p *process) read(output io.Reader) {
	defer close(p.finished)
	defer p.cmd.Wait() // all that it printed as errors is there then too
	for d := json.NewDecoder(output); ; {
		var m message
		if err := d.Decode(&m); err != nil {
			return // its exit status says more
		}
		p.take(m)
	}
}

func (p *process) take(m message) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch m.Kind {
	case leads:
		p.renewal = m.Renewal
	case began:
		p.runs, p.open = append(p.runs, m.Run), true
	case ended:
		p.runs[len(p.runs)-1], p.open = m.Run, false
		p.lost = m.Error
	case lasts:
		p.runs[len(p.runs)-1] = m.Run
	case failed:
		p.err = errors.New(m.Error)
	}
	select {
	case <-p.events[m.Kind]:
	default:
		close(p.events[m.Kind])
	}
}

// await blocks until the candidate has told something of the kind.
func (p *process) await(ctx context.Context, kind string) error {
	select {
	case <-p.events[kind]:
		return nil
	case <-p.events[failed]:
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return fmt.Errorf("candidate %s: Campaign failed: %w%s", p.name, p.err, p.log)
	case <-p.finished:
		return fmt.Errorf("candidate %s has ended and not told %q%s", p.name, kind, p.log)
	case <-ctx.Done():
		return fmt.Errorf("waiting for %q of candidate %s: %w%s", kind, p.name, context.Cause(ctx), p.log)
	}
}

// believes says whether the candidate's last answer was yes.
func (p *process) believes() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.open
}

// gaveUp is why the candidate does not believe any more, as the end of an error.
func (p *process) gaveUp() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.lost == "" {
		return ""
	}
	return ": " + p.lost
}

// alive says whether the process runs.
func (p *process) alive() bool {
	select {
	case <-p.finished:
		return false
	default:
		return true
	}
}

// end lets the candidate tell its last and end, and returns what it believed,
// and whether it did to the end. It may be called again.
func (p *process) end() (runs []run, open bool) {
	p.input.Close()
	<-p.finished
	return p.runs, p.open
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

// String is the end of an error.
func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	said := strings.TrimSpace(string(t.kept))
	if said == "" {
		return ""
	}
	return "; it printed:\n\t" + strings.ReplaceAll(said, "\n", "\n\t")
}
