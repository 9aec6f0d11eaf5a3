package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A Campaign holds elections at several places at the same time, each with one
// fault after another, drawn by lot, until its time is over.
type Campaign struct {
	Places   []string      // their names; see Names
	Duration time.Duration // no fault begins later; the end of the last rounds takes some seconds more
	Seed     uint64        // decides which faults come in which order at each place
	Dir      string        // for the processes' logs and the histories of violations; must exist
	Program  string        // the candidate, see Build
	Older    string        // one of each three candidates, if not empty: see BuildOlder

	// Groups, if not 0, makes one of so many rounds one of a group. All others are
	// elections.
	Groups int

	// Until, if not empty, are rules of the checker: a violation of any ends the
	// campaign, which judges more often then.
	Until []string

	mutex   sync.Mutex
	stop    context.CancelCauseFunc
	result  Result
	current map[string]string // what is broken at each place
}

// A Result is what came of a campaign.
type Result struct {
	History    history.History // of all rounds
	Violations []checker.Violation
	Kept       []string            // the files that hold them
	Fired      map[string]int      // how often each fault of Faults has struck
	At         map[string][]string // where each could strike
	Elections  int                 // rounds that have ended
	How        map[string]string   // what each place is
}

var errFound = errors.New("a violation was found")

// candidates is how many run for an election at a time.
const candidates = 3

// faultsPerRound is small enough that a history can be read, and checked within
// a second.
const faultsPerRound = 10

// programs are those of a round.
func (c *Campaign) programs() []string {
	all := slices.Repeat([]string{c.Program}, candidates)
	if c.Older != "" {
		all[0] = c.Older // which is started first
	}
	return all
}

// Run blocks until the time is over, or ctx ends. An error means that the
// campaign itself could not go on; violations are not errors.
func (c *Campaign) Run(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.stop = cancel
	c.current = map[string]string{}
	c.result.Fired, c.result.At, c.result.How = map[string]int{}, map[string][]string{}, map[string]string{}
	end := time.Now().Add(c.Duration)
	var group sync.WaitGroup
	for _, name := range c.Places {
		group.Go(func() {
			if err := c.hold(ctx, name, end); err != nil {
				cancel(err) // the first counts: the others end because of it
			}
		})
	}
	group.Wait()
	c.result.History.Sort()
	err := context.Cause(ctx)
	if errors.Is(err, errFound) {
		err = nil
	}
	return &c.result, err
}

// hold holds elections at one place.
func (c *Campaign) hold(ctx context.Context, name string, end time.Time) (err error) {
	c.now(name, "starting")
	p, err := Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	h := fnv.New64a()
	h.Write([]byte(name))
	// Two of them: what a fault draws has no influence on which comes next.
	shuffle, random := rand.New(rand.NewPCG(c.Seed, h.Sum64())), rand.New(rand.NewPCG(h.Sum64(), c.Seed))
	ofElections := []*deck{newDeck(shuffle, Faults(p))}
	records, others := GroupFaults(p)
	ofGroups := []*deck{newDeck(shuffle, records), newDeck(shuffle, others)} // in turn
	c.mutex.Lock()
	c.result.How[name] = p.How
	for _, f := range c.faults(p) {
		c.result.At[f] = append(c.result.At[f], name)
	}
	c.mutex.Unlock()

	for number := 1; time.Now().Before(end); number++ {
		s := Settings{Programs: c.programs(), Older: c.Older, Dir: c.Dir, Random: random, Name: fmt.Sprintf("%s-%d", p.id(), number)}
		decks := ofElections
		if c.Groups > 0 && (h.Sum64()+c.Seed+uint64(number))%uint64(c.Groups) == 0 {
			decks, s.Partitions, s.Name = ofGroups, partitions, s.Name+"-group"
		}
		r, err := NewRound(ctx, p, s)
		if err != nil {
			return err
		}
		faults := faultsPerRound
		if len(c.Until) > 0 {
			faults = 3
		}
		for i := range faults {
			f, ok := decks[i%len(decks)].draw(time.Until(end), p.Rules.TTL)
			if !ok {
				break
			}
			c.now(name, f.Name)
			if err := r.Strike(ctx, f); err != nil {
				return errors.Join(c.failed(r, err), r.kill())
			}
			c.struck(f.Name)
		}
		h, err := r.End(ctx)
		if err := errors.Join(err, c.judge(h)); err != nil {
			return err
		}
	}
	c.now(name, "done")
	return nil
}

// faults returns the names of all faults that the campaign has for a place.
func (c *Campaign) faults(p *Place) (names []string) {
	all := Faults(p)
	records, others := GroupFaults(p)
	switch c.Groups {
	case 0:
	case 1:
		all = slices.Concat(records, others)
	default:
		all = slices.Concat(all, records)
	}
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}

// failed keeps the history of a round that could not go on, and judges it: why
// it could not may well be a violation.
func (c *Campaign) failed(r *Round, err error) error {
	h := r.History()
	path := filepath.Join(c.Dir, r.name+".failed")
	return errors.Join(fmt.Errorf("%w; what happened is in %s", err, path), h.Save(path), c.judge(h))
}

// judge adds what happened in a round to the result.
func (c *Campaign) judge(h *history.History) error {
	violations := append(checker.Check(h), unprovoked(h)...)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.result.Elections++
	c.result.History.Elections = append(c.result.History.Elections, h.Elections...)
	c.result.History.Events = append(c.result.History.Events, h.Events...)
	for _, v := range violations {
		path, err := checker.Keep(c.Dir, h, v)
		if err != nil {
			return err
		}
		c.result.Violations = append(c.result.Violations, v)
		c.result.Kept = append(c.result.Kept, path)
	}
	if slices.ContainsFunc(violations, func(v checker.Violation) bool { return slices.Contains(c.Until, v.Rule) }) {
		c.stop(errFound)
	}
	return nil
}

func (c *Campaign) now(place, what string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.current[place] = what
}

func (c *Campaign) struck(fault string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.result.Fired[fault]++
}

// Progress says in a line what has happened so far and what happens now.
func (c *Campaign) Progress() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	faults := 0
	for _, n := range c.result.Fired {
		faults += n
	}
	line := fmt.Sprintf("%d faults, %d rounds judged, %d violations", faults, c.result.Elections, len(c.result.Violations))
	for _, name := range c.Places {
		line += " | " + name + ": " + c.current[name]
	}
	return line
}
