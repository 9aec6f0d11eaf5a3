package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A line is the way from a candidate to its store. It records when each write was
// sent and which are known to be applied, by an answer or by reading. It can break
// watches.
type line struct {
	backends.Backend

	mutex   sync.Mutex
	sent    map[backends.Attempt]time.Time
	proven  time.Time     // when the latest write was sent that is known to be applied
	wins    int           // writes that would have acquired
	watches int           // calls of Watch
	cut     bool          // Watch fails
	broken  chan struct{} // closed by cutWatches, and replaced
}

var errCut = errors.New("the watch was cut")

// newLine returns the line, and a backend that is a Watcher and a PresenceWatcher if b is.
func newLine(b backends.Backend) (*line, backends.Backend) {
	l := &line{Backend: b, sent: map[backends.Attempt]time.Time{}, broken: make(chan struct{})}
	w, _ := b.(backends.Watcher)
	p, attends := b.(backends.PresenceWatcher)
	watches := watchedLine{l, w}
	switch {
	case attends:
		return l, presentLine{watches, p}
	case w != nil:
		return l, watches
	}
	return l, l
}

func (l *line) Load(ctx context.Context, name string) (backends.Record, error) {
	r, err := l.Backend.Load(ctx, name)
	if err == nil {
		l.prove(r.Attempt)
	}
	return r, err
}

func (l *line) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	l.mutex.Lock()
	l.sent[next.Attempt] = time.Now()
	if prev.Attempt.Nonce != next.Attempt.Nonce {
		l.wins++
	}
	l.mutex.Unlock()
	r, err := l.Backend.Swap(ctx, name, prev, next)
	if err == nil {
		l.prove(next.Attempt)
	}
	return r, err
}

func (l *line) prove(a backends.Attempt) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sent := l.sent[a]; sent.After(l.proven) {
		l.proven = sent
	}
}

// latest returns when the latest write was sent that is known to be applied. The
// lease's t0 is earlier.
func (l *line) latest() time.Time { l.mutex.Lock(); defer l.mutex.Unlock(); return l.proven }

// acquiring returns how many writes would have acquired.
func (l *line) acquiring() int { l.mutex.Lock(); defer l.mutex.Unlock(); return l.wins }

// sentAt returns when a write was sent. Its t0 is earlier.
func (l *line) sentAt(a backends.Attempt) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.sent[a]
}

type watchedLine struct {
	*line
	watcher backends.Watcher
}

func (w watchedLine) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
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
	go func() { ended <- w.watcher.Watch(ctx, name, changed) }()
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
// mendWatches.
func (l *line) cutWatches() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cut = true
	close(l.broken)
	l.broken = make(chan struct{})
}

func (l *line) mendWatches() { l.mutex.Lock(); defer l.mutex.Unlock(); l.cut = false }

// watched returns how often Watch was called.
func (l *line) watched() int { l.mutex.Lock(); defer l.mutex.Unlock(); return l.watches }
