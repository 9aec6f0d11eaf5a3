package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// history is what happened, in the order of true time; it is put in words only
// when it is read.
type history struct {
	start time.Time

	mutex  sync.Mutex
	events []event
	closed bool // nothing is added any more
}

type event struct {
	at     time.Duration
	node   string
	format string
	args   []any
}

func (h *history) add(node, format string, args ...any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.closed {
		h.events = append(h.events, event{time.Since(h.start), node, format, args})
	}
}

func (h *history) close() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.closed = true
}

// tail returns the last events as text.
func (h *history) tail(most int) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var b strings.Builder
	events := h.events
	if len(events) > most {
		fmt.Fprintf(&b, "  (%d earlier events)\n", len(events)-most)
		events = events[len(events)-most:]
	}
	for _, e := range events {
		fmt.Fprintf(&b, "%17.9fs %-6s %s\n", e.at.Seconds(), e.node, fmt.Sprintf(e.format, e.args...))
	}
	return b.String()
}

// logHandler puts what an elector logs into the history, and calls seen.
type logHandler struct {
	h    *history
	node string
	seen func(slog.Record)
}

func (l logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (l logHandler) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logHandler) WithGroup(string) slog.Handler            { return l }

func (l logHandler) Handle(_ context.Context, r slog.Record) error {
	if l.seen != nil {
		l.seen(r)
	}
	args := []any{r.Message}
	r.Attrs(func(a slog.Attr) bool {
		args = append(args, a)
		return true
	})
	l.h.add(l.node, "log %v", args)
	return nil
}

// sorted returns the lines of the history, those of one instant in the order of
// their text: which of two goroutines is first then is left to the scheduler.
func (h *history) sorted() []string {
	lines := strings.Split(h.tail(1e9), "\n")
	slices.Sort(lines)
	return lines
}
