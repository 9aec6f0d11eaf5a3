package electorhttp

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Refusals are the requests that a handler could not forward, by the reason, of which
// there are few.
type refusals struct {
	mutex sync.Mutex
	of    map[string]*tally
}

// A tally counts the requests of one reason.
type tally struct {
	logged time.Time // the last line
	since  int       // requests that no line has counted
}

// logEvery is how often a reason that lasts is logged.
const logEvery = time.Minute

// count counts a request, and returns how many the next line is for; 0 if it is not time
// for one.
func (l *refusals) count(reason string, now time.Time) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.of == nil {
		l.of = map[string]*tally{}
	}
	t := l.of[reason]
	if t == nil {
		t = new(tally)
		l.of[reason] = t
	}
	t.since++
	if !t.logged.IsZero() && now.Sub(t.logged) < logEvery {
		return 0
	}
	n := t.since
	t.logged, t.since = now, 0
	return n
}

// report logs why a request was not forwarded, once for all that have the same reason.
func (f *forwarder) report(ctx context.Context, refused *refusal) {
	n := f.refusals.count(refused.text, time.Now())
	if n == 0 {
		return
	}
	logger := f.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.WarnContext(ctx, "elector: did not forward a request: "+refused.text, f.kind, f.name, "requests", n, "error", refused.err)
}
