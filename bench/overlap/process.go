package overlap

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/child"
)

// A process is a candidate: a process of its own.
type process struct {
	*child.Again
	name string

	mutex   sync.Mutex
	runs    []run // the last one is complete only when the process was ended
	open    bool  // the last run has not ended
	renewal []byte
	events  map[string]chan struct{} // closed when a message of the kind has come
	err     error                    // what it said when it failed
	lost    string                   // why it last ceased to believe, if it knows
}

// start starts this program again, as a candidate.
func start(l peers.Library, c peers.Config) (p *process, err error) {
	p = newProcess(c.ID)
	p.Again, err = child.StartAgain(candidateVariable, task{l.Name, l.Store, c}, p.take)
	return p, err
}

func newProcess(name string) *process {
	p := &process{name: name, events: map[string]chan struct{}{}}
	for _, kind := range []string{campaigns, leads, began, ended, lasts, failed} {
		p.events[kind] = make(chan struct{})
	}
	return p
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
		return fmt.Errorf("candidate %s: Campaign failed: %w%s", p.name, p.err, p.Printed())
	case <-p.Ended():
		return fmt.Errorf("candidate %s has ended and not told %q%s", p.name, kind, p.Printed())
	case <-ctx.Done():
		return fmt.Errorf("waiting for %q of candidate %s: %w%s", kind, p.name, context.Cause(ctx), p.Printed())
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
	case <-p.Ended():
		return false
	default:
		return true
	}
}

// end lets the candidate tell its last and end, and returns what it believed,
// and whether it did to the end. It may be called again.
func (p *process) end() (runs []run, open bool) {
	p.End()
	return p.runs, p.open
}
