// Package adversary stops leaders, with SIGSTOP, where it hurts: between Check and the
// write, between a guard's admission and the commit, in a handover, in a drain, around a
// renewal. Each stop lasts until a newer leader has written, and for a random time more.
// Then the old leader makes the write that it was about to make: through the guard of the
// data, and to a copy of the data that has none. The store's own order of writes judges:
// one with a token below that of an earlier write is stale.
//
// The leaders are real processes, built with calls at those points (see Build).
package adversary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/proof/adversary/wire"
	"github.com/elector-go/elector/internal/proof/child"
)

// A Place is where elections are held, and what their leaders write to.
type Place struct {
	Name   string
	Kind   string   // of the data
	Points []string // where its leaders stop
	URL    string   // of the elections' store
	Data   string   // where the data is

	// Read returns the writes to the data of an election, in the store's own order.
	Read func(ctx context.Context, election string, guarded bool) ([]wire.Write, error)

	// Outside breaks the Fence of the place's services: a mutant.
	Outside bool
}

// An Adversary stops the leaders of a place.
type Adversary struct {
	Program    string // the leader, see Build
	Place      *Place
	Stops      int // to make, in all elections
	Elections  int // at the same time
	Candidates int // of each
	TTL        time.Duration
	Seed       uint64
	Run        string // sets the names of the elections apart from those of others
	Log        func(format string, args ...any)

	mutex   sync.Mutex
	figures map[string]*Figures
	left    int // stops to make
	end     chan struct{}
	news    chan struct{} // closed and replaced at each message
}

// Figures are those of a point.
type Figures struct {
	Stops                      int    // that a newer leader's write has outlasted
	Refused, Failed, Committed int    // late guarded writes, as their leaders saw it
	Stale                      int    // guarded writes that are stale
	Unguarded                  int    // plain ones
	Believed                   int    // leaders that Check still believed right after the stop
	Error                      string // of one that failed
}

// patience is how long it may take to the next stop, and to the end of a leader.
const patience = 2 * time.Minute

// Make makes the stops, and returns the figures of each point.
func (a *Adversary) Make(ctx context.Context) (_ map[string]*Figures, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.figures, a.left, a.end, a.news = map[string]*Figures{}, a.Stops, make(chan struct{}), make(chan struct{})
	var elections []*election
	var group sync.WaitGroup
	for i := range a.Elections {
		e := &election{Adversary: a, number: i, name: fmt.Sprintf("adversary-%s-%s-%d", a.Place.Kind, a.Run, i), changed: make(chan struct{})}
		elections = append(elections, e)
		group.Go(func() {
			if err := e.hold(ctx); err != nil {
				cancel(fmt.Errorf("%s: election %s: %w", a.Place.Name, e.name, err))
			}
		})
	}
	a.watch(ctx, cancel)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return a.figures, err
	}
	for _, e := range elections {
		if err := e.judge(ctx); err != nil {
			return a.figures, err
		}
	}
	return a.figures, nil
}

// watch blocks until all stops are made or ctx ends, and ends it if no stop is made for
// long.
func (a *Adversary) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	defer close(a.end)
	late, last := time.NewTimer(patience), 0
	defer late.Stop()
	for {
		a.mutex.Lock()
		left, news := a.left, a.news
		a.mutex.Unlock()
		if left <= 0 {
			return
		}
		if tenth := a.Stops/10 + 1; left/tenth != last/tenth {
			a.Log("%s: %d of %d stops are left", a.Place.Name, left, a.Stops)
		}
		if left != last {
			late.Reset(patience)
			last = left
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		case <-late.C:
			cancel(fmt.Errorf("%s: there was no stop for %v, and %d are left", a.Place.Name, patience, left))
		}
	}
}

// count changes the figures of a point.
func (a *Adversary) count(point string, change func(*Figures)) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.figures[point] == nil {
		a.figures[point] = &Figures{}
	}
	change(a.figures[point])
	close(a.news)
	a.news = make(chan struct{})
}

// An election is one whose leaders are stopped.
type election struct {
	*Adversary
	number  int
	name    string
	service *service // or nil
	leaders []*leader

	mutex   sync.Mutex
	highest uint64        // token of a write
	changed chan struct{} // closed and replaced when it has grown
	pauses  sync.WaitGroup
}

// A leader is a process of an election.
type leader struct {
	name    string
	cmd     *exec.Cmd
	input   io.Closer
	printed bytes.Buffer
	done    chan error

	mutex sync.Mutex
	stops map[uint64]string // points, by tokens, of stops whose late writes are still to come
}

// hold holds the election until the end.
func (e *election) hold(ctx context.Context) (err error) {
	t := wire.Task{Kind: e.Place.Kind, URL: e.Place.URL, Data: e.Place.Data, Election: e.name, TTL: e.TTL, Points: e.Place.Points}
	if e.Place.Kind == wire.Fence {
		if e.service, err = newService(e.name, e.TTL); err != nil {
			return err
		}
		defer e.service.server.Close()
		e.service.outside = e.Place.Outside
		e.service.halt = e.halt
		t.Data = e.service.url
	}
	defer func() {
		for _, l := range e.leaders {
			l.cmd.Process.Kill()
			<-l.done
		}
		e.pauses.Wait()
	}()
	failed := make(chan error, e.Candidates)
	for i := range e.Candidates {
		t.Candidate = string(rune('a' + i))
		t.Seed = e.Seed<<16 + uint64(e.number*e.Candidates+i)
		l, err := e.start(t)
		if err != nil {
			return err
		}
		e.leaders = append(e.leaders, l)
		go func() {
			err := <-l.done
			l.done <- err
			failed <- fmt.Errorf("candidate %s has ended: %w; it printed: %s", l.name, err, l.printed.String())
		}()
	}
	select {
	case <-e.end:
	case err := <-failed:
		select {
		case <-e.end:
		default:
			return err
		}
	case <-ctx.Done():
		return nil
	}
	return e.finish(ctx)
}

// finish ends the leaders in order, those that stand too.
func (e *election) finish(ctx context.Context) error {
	if e.service != nil {
		close(e.service.end)
	}
	e.pauses.Wait() // they have gone on
	for _, l := range e.leaders {
		l.input.Close()
	}
	for _, l := range e.leaders {
		select {
		case err := <-l.done:
			l.done <- err
			if err != nil {
				return fmt.Errorf("candidate %s ended: %w; it printed: %s", l.name, err, l.printed.String())
			}
		case <-time.After(patience):
			return fmt.Errorf("candidate %s does not end", l.name)
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// start starts a leader and follows what it prints.
func (e *election) start(t wire.Task) (*leader, error) {
	l := &leader{name: t.Candidate, cmd: exec.Command(e.Program), done: make(chan error, 1), stops: map[uint64]string{}}
	l.cmd.Env = append(os.Environ(), t.Environment())
	l.cmd.Stderr = &l.printed
	input, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(l.cmd); err != nil {
		return nil, err
	}
	l.input = input
	go func() {
		for d := json.NewDecoder(output); ; {
			var m wire.Message
			if d.Decode(&m) != nil {
				break // its exit status says more
			}
			e.take(l, m)
		}
		l.done <- l.cmd.Wait()
	}()
	return l, nil
}

func (e *election) take(l *leader, m wire.Message) {
	switch m.Kind {
	case wire.Wrote:
		e.mutex.Lock()
		if m.Token > e.highest {
			e.highest = m.Token
			close(e.changed)
			e.changed = make(chan struct{})
		}
		e.mutex.Unlock()
	case wire.Trouble:
		e.count(wire.None, func(f *Figures) {
			f.Failed++
			f.Error = m.Error
		})
	case wire.Stops:
		l.note(m.Token, m.Point)
		e.pauses.Go(func() {
			if !e.outlast(m.Token) {
				l.forget(m.Token)
			}
			if err := errors.Join(child.WaitFrozen(l.cmd.Process.Pid), child.Thaw(l.cmd.Process.Pid)); err != nil {
				l.cmd.Process.Kill() // which ends the election with an error
			}
		})
	case wire.Went:
		if l.forget(m.Token) != m.Point || !e.overtaken(m.Token) {
			return // the point was not reached, or the end has cut the stop short
		}
		e.count(m.Point, func(f *Figures) {
			f.Stops++
			e.left--
			switch m.Outcome {
			case wire.Refused:
				f.Refused++
			case wire.Committed:
				f.Committed++
			default:
				f.Failed++
				f.Error = m.Error
			}
			if m.Believed {
				f.Believed++
			}
		})
	}
}

func (l *leader) note(token uint64, point string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.stops[token] = point
}

func (l *leader) forget(token uint64) (point string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	point = l.stops[token]
	delete(l.stops, token)
	return point
}

// overtaken reports whether a leader with a higher token has written.
func (e *election) overtaken(token uint64) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.highest > token
}

// outlast blocks until a leader with a higher token has written and for a random time
// more. It reports false if the end comes before there is one.
func (e *election) outlast(token uint64) bool {
	for {
		e.mutex.Lock()
		highest, changed := e.highest, e.changed
		e.mutex.Unlock()
		if highest > token {
			break
		}
		select {
		case <-changed:
		case <-e.end:
			return false
		}
	}
	select {
	case <-time.After(rand.N(e.TTL)):
	case <-e.end:
	}
	return true
}

// halt stops a leader for its service. The stop does not count if it was cut short.
func (e *election) halt(candidate string, token uint64) (resume func(short bool), err error) {
	i := slices.IndexFunc(e.leaders, func(l *leader) bool { return l.name == candidate })
	if i < 0 {
		return nil, fmt.Errorf("there is no candidate %q", candidate)
	}
	l := e.leaders[i]
	if err := child.Freeze(l.cmd.Process.Pid); err != nil {
		return nil, err
	}
	l.note(token, wire.Admitted)
	return func(short bool) {
		if short {
			l.forget(token)
		}
		child.Thaw(l.cmd.Process.Pid)
	}, nil
}

// judge counts the stale writes of the election.
func (e *election) judge(ctx context.Context) error {
	for _, guarded := range []bool{true, false} {
		var all []wire.Write
		var err error
		if e.service != nil {
			all = e.service.read(guarded)
		} else {
			all, err = e.Place.Read(ctx, e.name, guarded)
		}
		if err != nil {
			return fmt.Errorf("%s: reading the data of %s: %w", e.Place.Name, e.name, err)
		}
		if len(all) == 0 {
			return fmt.Errorf("%s: there are no writes to %s", e.Place.Name, e.name)
		}
		for _, w := range stale(all) {
			e.count(w.Point, func(f *Figures) {
				if guarded {
					f.Stale++
				} else {
					f.Unguarded++
				}
			})
		}
	}
	return nil
}

// stale returns the writes that follow one with a higher token.
func stale(all []wire.Write) (found []wire.Write) {
	highest := uint64(0)
	for _, w := range all {
		if w.Token < highest {
			found = append(found, w)
		}
		highest = max(highest, w.Token)
	}
	return found
}

// Sum adds figures up.
func Sum(all map[string]*Figures) (s Figures) {
	for _, f := range all {
		s.Stops += f.Stops
		s.Refused += f.Refused
		s.Failed += f.Failed
		s.Committed += f.Committed
		s.Stale += f.Stale
		s.Unguarded += f.Unguarded
		s.Believed += f.Believed
	}
	return s
}

// Table writes figures for people, a line for each point.
func Table(place string, all map[string]*Figures) string {
	var b strings.Builder
	const format = "%-52s %6v %8v %7v %10v %14v %16v\n"
	fmt.Fprintf(&b, format, place, "stops", "refused", "failed", "committed", "stale, guarded", "stale, unguarded")
	var names []string
	for point := range all {
		names = append(names, point)
	}
	slices.Sort(names)
	for _, point := range names {
		f := all[point]
		fmt.Fprintf(&b, format, "  "+wire.Points[point], f.Stops, f.Refused, f.Failed, f.Committed, f.Stale, f.Unguarded)
	}
	for _, point := range names {
		if f := all[point]; f.Error != "" {
			fmt.Fprintf(&b, "  failed %s: %s\n", wire.Points[point], f.Error)
		}
	}
	s := Sum(all)
	fmt.Fprintf(&b, format, "  all", s.Stops, s.Refused, s.Failed, s.Committed, s.Stale, s.Unguarded)
	return b.String()
}
