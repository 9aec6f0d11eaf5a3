package overlap

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
)

// candidateVariable makes this program a candidate: an environment variable
// with a task.
const candidateVariable = "ELECTOR_OVERLAP_CANDIDATE"

// A task tells a candidate what to do.
type task struct {
	Library, Store string
	Config         peers.Config
}

// A message is a line that a candidate prints.
type message struct {
	Kind    string
	Run     run    `json:",omitzero"`
	Renewal []byte `json:",omitempty"`
	Error   string `json:",omitempty"`
}

// Kinds of messages.
const (
	campaigns = "campaigns" // it is connected and campaigns
	leads     = "leads"     // Campaign has returned
	began     = "began"     // a run has begun
	ended     = "ended"     // a run is over, and this is all of it
	lasts     = "lasts"     // a run has not ended when the candidate was told to
	failed    = "failed"
)

// sampleEvery is how often a candidate asks its library.
const sampleEvery = 5 * time.Millisecond

// Main makes this process a candidate, if Measure has started it for that, and
// returns true when it has ended; or exits with a status of 1. Otherwise it
// returns false at once. Call it first in main.
func Main() bool {
	var t task
	is, err := child.Task(candidateVariable, &t)
	if is && err == nil {
		err = candidate(t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return is
}

// candidate ends when its input does.
func candidate(t task) error {
	out := &printer{encoder: json.NewEncoder(os.Stdout)}
	library, ok := find(t.Library, t.Store)
	if !ok {
		return fmt.Errorf("there is no library %q on %s", t.Library, t.Store)
	}
	opening, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := library.Open(opening, t.Config)
	if err != nil {
		return err
	}
	s := &sampler{leads: c.Leads, now: history.BootTime, out: out.print}
	if c, ok := c.(interface{ Lost() error }); ok {
		s.lost = c.Lost
	}
	go func() {
		for tick := time.NewTicker(sampleEvery); ; <-tick.C {
			s.sample()
		}
	}()
	out.print(message{Kind: campaigns})
	go func() {
		if err := c.Campaign(context.Background()); err != nil {
			out.print(message{Kind: failed, Error: err.Error()})
			return
		}
		out.print(message{Kind: leads, Renewal: c.Renewal()})
	}()
	io.Copy(io.Discard, os.Stdin)
	s.stop()
	return nil // without Close, which may wait for a store that is out of reach
}

// A printer prints messages.
type printer struct {
	mutex   sync.Mutex
	encoder *json.Encoder
}

func (p *printer) print(m message) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.encoder.Encode(m) // if no process reads, our input has ended too
}

// A sampler asks again and again whether a candidate leads, and reports the
// runs.
type sampler struct {
	leads func() bool
	lost  func() error // why it does not; may be nil
	now   func() time.Duration
	out   func(message)

	mutex   sync.Mutex // not held while the library is asked, which may block
	current *run       // nil while the answer is no
	stopped bool
}

func (s *sampler) sample() {
	asked := s.now()
	yes := s.leads()
	answered := s.now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case s.stopped:
	case yes && s.current == nil:
		s.current = &run{asked, answered, asked, answered}
		s.out(message{Kind: began, Run: *s.current})
	case yes:
		s.current.LastAsked, s.current.LastAnswered = asked, answered
	case s.current != nil:
		m := message{Kind: ended, Run: *s.current}
		if s.lost != nil {
			m.Error = fmt.Sprint(s.lost())
		}
		s.out(m)
		s.current = nil
	}
}

// stop reports a run that has not ended. A sample under way does not count.
func (s *sampler) stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.stopped = true
	if s.current != nil {
		s.out(message{Kind: lasts, Run: *s.current})
	}
}
