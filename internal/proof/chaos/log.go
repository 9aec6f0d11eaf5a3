package chaos

import (
	"context"
	"fmt"
	"sync"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A log collects the events of one election as they are told.
type log struct {
	mutex   sync.Mutex
	events  []history.Event
	changed chan struct{} // closed at the next event
}

func newLog() *log { return &log{changed: make(chan struct{})} }

func (l *log) tell(e history.Event) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.events = append(l.events, e)
	close(l.changed)
	l.changed = make(chan struct{})
}

// from returns the events since the position, the next position, and what is
// closed when there are more.
func (l *log) from(position int) ([]history.Event, int, <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.events[position:], len(l.events), l.changed
}

// position is that of the next event.
func (l *log) position() int {
	_, n, _ := l.from(0)
	return n
}

// wait returns the first event since the position that matches. what is for
// the error if there is none before ctx ends.
func (l *log) wait(ctx context.Context, position int, what string, match func(history.Event) bool) (history.Event, error) {
	for {
		events, next, more := l.from(position)
		for _, e := range events {
			if match(e) {
				return e, nil
			}
		}
		position = next
		select {
		case <-more:
		case <-ctx.Done():
			return history.Event{}, fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}
