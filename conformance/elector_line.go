package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A ledger records when each write was sent, and which writes are known to be
// applied, by an answer or by a read.
type ledger struct {
	mutex  sync.Mutex
	sent   map[backends.Attempt]time.Time // for the first time
	proven map[string]time.Time           // by election: when the latest write was sent that is known to be applied
}

func newLedger() ledger {
	return ledger{sent: map[backends.Attempt]time.Time{}, proven: map[string]time.Time{}}
}

// leaves records that a write is sent now.
func (l *ledger) leaves(a backends.Attempt) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, again := l.sent[a]; !again {
		l.sent[a] = time.Now()
	}
}

// prove records that a write was applied, unless there was an error.
func (l *ledger) prove(name string, a backends.Attempt, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sent := l.sent[a]; err == nil && sent.After(l.proven[name]) {
		l.proven[name] = sent
	}
}

// sentAt returns when a write was sent. Its t0 is earlier.
func (l *ledger) sentAt(a backends.Attempt) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.sent[a]
}

// latestOf returns when the latest write of an election was sent that is known to
// be applied. The lease's t0 is earlier.
func (l *ledger) latestOf(name string) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.proven[name]
}

// A line is the way from a candidate to its store. It records writes, and can break
// watches.
type line struct {
	backends.Backend
	ledger
	name string // of the election

	wins    int           // writes that would have acquired
	watches int           // calls of Watch
	cut     bool          // Watch fails
	broken  chan struct{} // closed by cutWatches, and replaced
}

var errCut = errors.New("the watch was cut")

// newLine returns the line, and a backend that is a Watcher, a PresenceWatcher and a
// Liner if b is.
func newLine(b backends.Backend, name string) (*line, backends.Backend) {
	l := &line{Backend: b, ledger: newLedger(), name: name, broken: make(chan struct{})}
	w, _ := b.(backends.Watcher)
	p, attends := b.(backends.PresenceWatcher)
	q, queues := b.(backends.Liner)
	watches := watchedLine{l, w}
	switch {
	case attends && queues:
		return l, struct {
			presentLine
			queue
		}{presentLine{watches, p}, queue{watches, q}}
	case attends:
		return l, presentLine{watches, p}
	case queues:
		return l, struct {
			watchedLine
			queue
		}{watches, queue{watches, q}}
	case w != nil:
		return l, watches
	}
	return l, l
}

// A queue passes the place in line on.
type queue struct {
	over  watchedLine
	liner backends.Liner
}

func (q queue) WatchLine(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
	return q.over.watch(ctx, func(ctx context.Context) error { return q.liner.WatchLine(ctx, name, changed, placed) })
}

func (q queue) SwapPlace(ctx context.Context, name, prev, next string) error {
	return q.liner.SwapPlace(ctx, name, prev, next)
}

func (l *line) Load(ctx context.Context, name string) (backends.Record, error) {
	r, err := l.Backend.Load(ctx, name)
	l.prove(name, r.Attempt, err)
	return r, err
}

func (l *line) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	l.leaves(next.Attempt)
	if prev.Attempt.Nonce != next.Attempt.Nonce {
		l.mutex.Lock()
		l.wins++
		l.mutex.Unlock()
	}
	r, err := l.Backend.Swap(ctx, name, prev, next)
	l.prove(name, next.Attempt, err)
	return r, err
}

// latest is latestOf for the election of the candidate.
func (l *line) latest() time.Time { return l.latestOf(l.name) }

// acquiring returns how many writes would have acquired.
func (l *line) acquiring() int { l.mutex.Lock(); defer l.mutex.Unlock(); return l.wins }

type watchedLine struct {
	*line
	watcher backends.Watcher
}

func (w watchedLine) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return w.watch(ctx, func(ctx context.Context) error { return w.watcher.Watch(ctx, name, changed) })
}

func (w watchedLine) watch(ctx context.Context, watch func(context.Context) error) error {
	w.mutex.Lock()
	w.watches++
	cut, broken := w.cut, w.broken
	w.mutex.Unlock()
	if cut {
		return errCut
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- watch(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-broken:
		cancel()
		<-ended
		return errCut
	}
}

type presentLine struct {
	watchedLine
	presence backends.PresenceWatcher
}

func (p presentLine) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	return p.presence.WatchPresence(ctx, name, held)
}

// cutWatches ends the Watch that runs and makes further ones fail until
// restoreWatches.
func (l *line) cutWatches() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cut = true
	close(l.broken)
	l.broken = make(chan struct{})
}

func (l *line) restoreWatches() { l.mutex.Lock(); defer l.mutex.Unlock(); l.cut = false }

// watched returns how often Watch was called.
func (l *line) watched() int { l.mutex.Lock(); defer l.mutex.Unlock(); return l.watches }
