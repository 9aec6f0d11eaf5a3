package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/data"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/chaos/task"
)

// patience bounds every wait for what must happen by the rules: much longer
// than they allow, for slow machines. What took too long by the rules is for
// the checker to say.
const patience = 90 * time.Second

// A Round is one election that is held, or one group that works, while things break.
type Round struct {
	place    *Place
	dir      string // for the logs of the processes
	random   *rand.Rand
	sure     bool
	older    string
	name     string             // of the election or the group
	offices  []history.Election // the election, or the partitions of the group
	group    *group             // nil in an election
	log      *history.Log
	resource *resource
	slots    []*slot
	extra    []string         // more environment for the processes
	asked    *elector.Elector // for what the campaign itself wants to know; nil in a group
	states   []state          // of the record, see remember
}

// A slot is the place of one candidate: when its process ends, another one is
// started in it, behind the same proxies.
type slot struct {
	program   string
	letter    string
	processes int
	link      []*network.Proxy
	url, data string
	*process
}

// Settings are what a round needs besides its place.
type Settings struct {
	Programs    []string   // the candidates, one of each, see Build
	Older       string     // that of them which is older than this tree; may be empty
	Dir         string     // where the processes' logs go
	Random      *rand.Rand // decides what happens
	Name        string     // of the election or the group, unique
	Partitions  int        // of the group; 0 for an election
	Sure        bool       // faults strike the leader, and last for more than a TTL
	Environment []string   // more variables for the processes
}

// NewRound starts the candidates of a new election or a new group and waits until one
// leads, or until each partition has an owner.
func NewRound(ctx context.Context, p *Place, s Settings) (*Round, error) {
	r := &Round{place: p, dir: s.Dir, random: s.Random, sure: s.Sure, older: s.Older, extra: s.Environment, name: s.Name, log: &history.Log{}}
	if s.Partitions > 0 {
		r.group = newGroup(r, s.Partitions)
		r.offices = r.group.offices()
	} else {
		r.offices = []history.Election{{Store: p.Name, Name: s.Name, Rules: p.Rules}}
	}
	if err := r.begin(ctx, s.Programs); err != nil {
		return nil, errors.Join(err, r.kill())
	}
	return r, nil
}

func (r *Round) begin(ctx context.Context, programs []string) (err error) {
	if r.resource, err = newResource(r.name, r.tell); err != nil {
		return err
	}
	err = insist(ctx, func() (err error) {
		url := r.place.URL(func(address string) string { return address })
		// The default TTL, and so a longer RequestTimeout than the candidates'.
		o := elector.Options{ID: "campaign", Logger: quiet}
		if r.group != nil {
			return r.group.join(ctx, url, o)
		}
		r.asked, err = elector.Open(ctx, url, r.name, &o)
		return err
	})
	if err != nil {
		return err
	}
	for i, program := range programs {
		s := &slot{program: program, letter: string(rune('A' + i))}
		r.slots = append(r.slots, s)
		if s.link, s.url, s.data, err = r.place.proxies(); err != nil {
			return err
		}
		if err := r.start(s); err != nil {
			return err
		}
	}
	if err := r.calm(ctx); err != nil {
		return err
	}
	return r.remember(ctx)
}

// tell takes an event: of the election, or of the whole group, if it names none.
func (r *Round) tell(e history.Event) {
	if e.Election == "" {
		e.Election = r.name
	}
	r.log.Tell(e)
}

// breaks tells that something is broken from now on, and returns what tells
// that it was mended. The candidate is empty for what hits all of them.
func (r *Round) breaks(what, candidate string) (healed func()) {
	now := history.BootTime()
	e := history.Event{Kind: history.Fault, Candidate: candidate, Detail: what, Before: now, At: now}
	r.tell(e)
	return func() {
		e.Kind, e.Before = history.Healed, history.BootTime()
		e.At = e.Before
		r.tell(e)
	}
}

// start starts the next process of a slot.
func (r *Round) start(s *slot) (err error) {
	s.processes++
	name := s.letter
	if s.processes > 1 {
		name = fmt.Sprintf("%s%d", s.letter, s.processes)
	}
	t := task.Task{
		URL:        s.url,
		Data:       s.data,
		Election:   r.name,
		Candidate:  name,
		TTL:        r.place.Rules.TTL,
		Priority:   s.processes % 3, // it changes with each start
		Resource:   r.resource.url,
		WriteEvery: 200 * time.Millisecond,
		ReadEvery:  time.Second,
	}
	if r.group != nil {
		t.Partitions = r.group.partitions
		t.WriteEvery *= 2 // as there are many of them
		t.ReadEvery /= 4
	}
	s.process, err = startProcess(s.program, r.dir, t, r.extra, r.tell)
	return err
}

// calm waits until all is well again: the records say who leads, those
// candidates have written since, and all candidates have reached the store.
func (r *Round) calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v", patience))
	defer cancel()
	for r.group != nil {
		settled, err := r.group.settled(ctx)
		if err != nil {
			return fmt.Errorf("waiting until each partition has an owner that writes: %w", err)
		}
		if settled {
			break
		}
	}
	for r.group == nil {
		position := r.log.Position()
		var l elector.Leader
		if err := insist(ctx, func() (err error) { l, err = r.asked.Leader(ctx); return err }); err != nil {
			return fmt.Errorf("asking who leads: %w", err)
		}
		settled, err := r.settled(ctx, position, l)
		if err != nil {
			return fmt.Errorf("waiting until a leader writes: %w", err)
		}
		if settled {
			break
		}
	}
	for _, s := range r.slots {
		_, err := r.log.Wait(ctx, 0, "candidate "+s.name+" to reach the store", func(e history.Event) bool {
			return e.Candidate == s.name && e.Kind == history.Opened
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settled waits until the leader of the record has written, and reports
// whether it has: anything that makes another leader ends it as well.
func (r *Round) settled(ctx context.Context, position int, l elector.Leader) (bool, error) {
	begun := uint64(0)
	e, err := r.log.Wait(ctx, position, "a write of candidate "+l.ID, func(e history.Event) bool {
		own := e.Candidate == l.ID && e.Token == l.Token
		switch e.Kind {
		case history.Acquired, history.Ended:
			return true
		case history.Observed:
			return e.Holder != l.ID || e.Token != l.Token
		case history.Writing:
			if own {
				begun = e.Number
			}
		case history.Wrote:
			return own && e.Number == begun
		}
		return false
	})
	return err == nil && e.Kind == history.Wrote, err
}

// leader returns the slot that wrote last.
func (r *Round) leader() (*slot, error) {
	events, _, _ := r.log.From(0)
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e.Kind == history.Wrote {
			for _, s := range r.slots {
				if s.name == e.Candidate {
					return s, nil
				}
			}
		}
	}
	return nil, errors.New("no candidate leads")
}

// leads returns the offices that a slot leads, or led last, as far as their writes
// tell.
func (r *Round) leads(s *slot) (offices []string) {
	last := map[string]string{}
	events, _, _ := r.log.From(0)
	for _, e := range events {
		if e.Kind == history.Wrote {
			last[e.Election] = e.Candidate
		}
	}
	for _, o := range r.offices {
		if last[o.Name] == s.name {
			offices = append(offices, o.Name)
		}
	}
	return offices
}

// written waits until a wanted candidate has written.
func (r *Round) written(ctx context.Context, position int, office string, wanted func(candidate string) bool) (history.Event, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("none within %v", patience))
	defer cancel()
	return r.log.Wait(ctx, position, "a write", func(e history.Event) bool {
		return e.Kind == history.Wrote && e.Election == office && wanted(e.Candidate)
	})
}

// victim returns the leader, or with a chance of a quarter anybody.
func (r *Round) victim() (*slot, error) {
	if !r.sure && r.random.IntN(4) == 0 {
		return r.slots[r.random.IntN(len(r.slots))], nil
	}
	return r.leader()
}

// last waits a random time of so many TTLs at least and at most: a fault lasts
// that long.
func (r *Round) last(ctx context.Context, least, most float64) error {
	if r.sure {
		least, most = 1.3, 1.3
	}
	ttls := least + (most-least)*r.random.Float64()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(ttls * float64(r.place.Rules.TTL))):
		return nil
	}
}

// End ends all candidates in order and returns what happened.
func (r *Round) End(ctx context.Context) (*history.History, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v", patience))
	defer cancel()
	var err error
	for _, s := range r.slots {
		err = errors.Join(err, s.terminate(ctx))
	}
	err = errors.Join(err, r.readData(ctx))
	return r.History(), errors.Join(err, r.close())
}

// readData tells what stands in the data. Its writers have ended.
func (r *Round) readData(ctx context.Context) error {
	if r.place.data == nil {
		return nil
	}
	for _, o := range r.offices {
		var all []data.Write
		before := history.BootTime()
		err := insist(ctx, func() (err error) { all, err = r.place.data.Read(ctx, o.Name); return err })
		if err != nil {
			return fmt.Errorf("reading the data: %w", err)
		}
		for _, w := range all {
			r.tell(history.Event{Election: o.Name, Kind: history.Kept, Candidate: w.Candidate, Token: w.Token, Number: w.Number, Before: before, At: history.BootTime()})
		}
	}
	return nil
}

// History returns what has happened so far. What happened to a whole group has
// happened to each of its partitions.
func (r *Round) History() *history.History {
	events, _, _ := r.log.From(0)
	h := &history.History{Elections: r.offices}
	for _, e := range events {
		if r.group == nil || e.Election != r.name {
			h.Events = append(h.Events, e)
			continue
		}
		for _, o := range r.offices {
			e.Election = o.Name
			h.Events = append(h.Events, e)
		}
	}
	h.Sort()
	return h
}

// kill ends a round that went wrong.
func (r *Round) kill() error {
	for _, s := range r.slots {
		if s.process != nil {
			s.process.cmd.Process.Kill()
			<-s.exited
		}
	}
	return r.close()
}

func (r *Round) close() (err error) {
	for _, s := range r.slots {
		for _, p := range s.link {
			err = errors.Join(err, p.Close())
		}
	}
	if r.asked != nil {
		err = errors.Join(err, r.asked.Close())
	}
	if r.group != nil {
		err = errors.Join(err, r.group.close())
	}
	if r.resource != nil {
		err = errors.Join(err, r.resource.close())
	}
	return err
}
