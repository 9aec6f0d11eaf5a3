package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/stores"
)

const (
	ttl    = time.Second
	looks  = 5 * time.Millisecond // between two looks of a worker at its lease
	reads  = 20 * time.Millisecond
	enough = time.Minute // much longer than anything here takes
)

// A scene is one election on a cluster, with an observer on each member and a
// reader on all of them, and all that happens in it.
type scene struct {
	cluster   *stores.Cluster
	name      string
	rules     history.Rules
	broken    time.Duration // when the last fault was there
	observers []*observer
	end       func() // ends what runs all the time

	mutex   sync.Mutex
	events  []history.Event
	changed chan struct{} // closed and replaced by each event, and by what an observer sees
}

func newScene(t *testing.T, c *stores.Cluster, kase string) *scene {
	s := &scene{
		cluster: c,
		name:    strings.ReplaceAll(kase, "/", "-"),
		rules:   history.RulesOf(ttl, 0),
		changed: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	s.end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		for _, w := range s.observers {
			w.close(t)
		}
	})
	t.Cleanup(s.end)
	all.Go(func() { s.recorder("").WatchStalls(ctx) })
	s.ready(t)
	for i := range c.Members {
		w := &observer{scene: s, name: fmt.Sprintf("O%d", i)}
		w.elector, _ = s.open(t, w.name, c.Members[i].URL)
		s.observers = append(s.observers, w)
		all.Go(func() { w.observe(ctx, t) })
	}
	reader, r := s.open(t, "R", c.URL())
	all.Go(func() {
		read(ctx, reader, r)
		if err := reader.Close(); err != nil {
			t.Errorf("closing R: %v", err)
		}
	})
	return s
}

// ended ends the scene and returns what has happened.
func (s *scene) ended() *history.History {
	s.end()
	h := &history.History{
		Elections: []history.Election{{Store: s.cluster.Kind + " 3 nodes", Name: s.name, Rules: s.rules}},
		Events:    s.events,
	}
	h.Sort()
	return h
}

func (s *scene) recorder(candidate string) *history.Recorder {
	return &history.Recorder{Election: s.name, Candidate: candidate, Tell: s.tell}
}

func (s *scene) tell(e history.Event) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.events = append(s.events, e)
	s.wake()
}

// wake is called with the mutex locked.
func (s *scene) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *scene) position() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.events)
}

// await waits for an event that comes from now on.
func (s *scene) await(t *testing.T, what string, match func(history.Event) bool) history.Event {
	t.Helper()
	return s.awaitFrom(t, s.position(), what, match)
}

// awaitFrom waits for the first event at or after a position.
func (s *scene) awaitFrom(t *testing.T, position int, what string, match func(history.Event) bool) (found history.Event) {
	t.Helper()
	s.until(t, what, func() bool {
		for ; position < len(s.events); position++ {
			if found = s.events[position]; match(found) {
				return true
			}
		}
		return false
	})
	return found
}

// until waits until something holds, which is asked with the mutex locked.
func (s *scene) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	overdue := time.NewTimer(enough)
	defer overdue.Stop()
	for {
		s.mutex.Lock()
		changed, done := s.changed, holds()
		s.mutex.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-overdue.C:
			s.mutex.Lock()
			defer s.mutex.Unlock()
			t.Fatalf("waited %v for %s; the last events are\n%s", enough, what, lines(s.events))
		}
	}
}

// lines are the last events, without the looks of workers.
func lines(events []history.Event) string {
	var last []string
	for _, e := range events {
		if e.Kind != history.Checked {
			last = append(last, e.String())
		}
	}
	return strings.Join(last[max(0, len(last)-60):], "\n")
}

func (s *scene) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, s.cluster.Ready(ctx))
}

// leader returns which member leads the store, once all of them answer.
func (s *scene) leader(t *testing.T) int {
	t.Helper()
	s.ready(t)
	i, err := s.cluster.Leader(t.Context())
	must(t, err)
	return i
}

// tellStore does something to the store and tells it.
func (s *scene) tellStore(t *testing.T, kind history.Kind, detail string, do func() error) {
	t.Helper()
	before := history.BootTime()
	must(t, do())
	s.recorder("").Event(history.Event{Kind: kind, Before: before, Detail: detail})
}

// answers is what a Healed event says when the servers that run and are
// connected answer again, whatever became of the others.
const answers = "the store answers"

// breaks breaks something, and waits until the store answers again without it.
func (s *scene) breaks(t *testing.T, what string, do func() error) {
	t.Helper()
	s.tellStore(t, history.Fault, what, do)
	s.broken = history.BootTime()
	s.tellStore(t, history.Healed, answers, func() error { s.ready(t); return nil })
}

// mends undoes a fault.
func (s *scene) mends(t *testing.T, kind history.Kind, what string, do func() error) {
	t.Helper()
	s.tellStore(t, kind, what, do)
}

// open makes a candidate that is connected to what url names. The store answers
// when this is called; one request may still be slow.
func (s *scene) open(t *testing.T, name, url string) (*elector.Elector, *history.Recorder) {
	t.Helper()
	if s.cluster.Kind == stores.ZooKeeper {
		url += "?session_timeout=" + (2 * ttl).String() // as the adapter asks for, with a TTL so short
	}
	r := s.recorder(name)
	options := &elector.Options{ID: name, TTL: ttl, Trace: r.Trace(), Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	for {
		e, err := elector.Open(ctx, url, s.name, options)
		if errors.Is(err, elector.ErrUnavailable) && ctx.Err() == nil {
			continue
		}
		must(t, err)
		r.Event(history.Event{Kind: history.Opened})
		return e, r
	}
}

// A candidate runs for office until it is stopped.
type candidate struct {
	name string
	stop func(t *testing.T) // resigns, and returns when nothing of it is left
}

func (s *scene) campaign(t *testing.T, name string, member int) *candidate {
	t.Helper()
	e, r := s.open(t, name, s.cluster.Members[member].URL)
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	go func() {
		err := e.Run(ctx, func(ctx context.Context, l *elector.Lease) error { return work(ctx, l, r) })
		if ctx.Err() == nil {
			r.Event(history.Event{Kind: history.Fatal, Detail: fmt.Sprint(err)})
		}
		returned <- errors.Join(err, e.Close())
	}()
	var once sync.Once
	c := &candidate{name: name}
	c.stop = func(t *testing.T) {
		once.Do(func() {
			cancel()
			select {
			case <-returned:
			case <-time.After(enough):
				t.Errorf("%s has not returned within %v of being told to", name, enough)
			}
		})
	}
	t.Cleanup(func() { c.stop(t) })
	return c
}

// work looks at the lease as often as a worker with many small writes would.
func work(ctx context.Context, l *elector.Lease, r *history.Recorder) error {
	tick := time.NewTicker(looks)
	defer tick.Stop()
	for kind := history.Acquired; ; kind = history.Checked {
		r.Look(kind, l, 0)
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.Event(history.Event{Kind: history.Canceled, Token: l.Token()})
			return context.Cause(ctx)
		}
	}
}

// read reads who leads, over and over, from whichever member it may be.
func read(ctx context.Context, e *elector.Elector, r *history.Recorder) {
	tick := time.NewTicker(reads)
	defer tick.Stop()
	for {
		r.Leader(ctx, e)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// An observer is on one member, and only observes.
type observer struct {
	scene   *scene
	name    string
	elector *elector.Elector
	last    elector.Leader // guarded by the scene's mutex
}

func (w *observer) observe(ctx context.Context, t *testing.T) {
	for l, err := range w.elector.Observe(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("%s observes no more: %v", w.name, err)
			}
			return
		}
		w.scene.mutex.Lock()
		if l.Token < w.last.Token {
			t.Errorf("%s saw token %v after %v", w.name, l.Token, w.last.Token)
		}
		w.last = l
		w.scene.wake()
		w.scene.mutex.Unlock()
	}
}

// leader is what it has seen last.
func (w *observer) leader() elector.Leader {
	w.scene.mutex.Lock()
	defer w.scene.mutex.Unlock()
	return w.last
}

func (w *observer) catchesUp(t *testing.T, token elector.Token) {
	t.Helper()
	w.scene.until(t, fmt.Sprintf("%s to see token %v", w.name, token), func() bool { return w.last.Token >= token && w.last.ID != "" })
}

func (w *observer) close(t *testing.T) {
	if err := w.elector.Close(); err != nil {
		t.Errorf("closing %s: %v", w.name, err)
	}
}
