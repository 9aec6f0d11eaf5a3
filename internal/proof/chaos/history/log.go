package history

import (
	"context"
	"fmt"
	"sync"
)

// A Log collects events as they are told. It is empty at first, and its methods
// may be called at the same time.
type Log struct {
	mutex   sync.Mutex
	events  []Event
	changed chan struct{} // closed at the next event; nil if no goroutine waits for it
}

// Tell adds an event.
func (l *Log) Tell(e Event) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.events = append(l.events, e)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// From returns the events since the position, the next position, and what is
// closed when there are more.
func (l *Log) From(position int) ([]Event, int, <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.events[position:len(l.events):len(l.events)], len(l.events), l.changed
}

// Position is that of the next event.
func (l *Log) Position() int {
	_, n, _ := l.From(0)
	return n
}

// Wait returns the first event since the position that matches. what is for
// the error if there is none before ctx ends.
func (l *Log) Wait(ctx context.Context, position int, what string, match func(Event) bool) (Event, error) {
	for {
		events, next, more := l.From(position)
		for _, e := range events {
			if match(e) {
				return e, nil
			}
		}
		position = next
		select {
		case <-more:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}
