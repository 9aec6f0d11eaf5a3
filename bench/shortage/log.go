package shortage

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Logged is what was logged as a warning or an error.
type Logged struct {
	Lines    int
	Causes   int    // different ones
	Repeated int    // lines whose cause had a line within the last repeated
	Loudest  string // the cause with the most lines, with the first of them
	Loud     int    // its lines
}

// repeated is more than two renewal intervals: what happens again after it is a new event.
const repeated = 10 * time.Second

// A journal counts the lines of a log by their causes. The lines of two elections have
// the same cause if they differ in names and numbers alone.
type journal struct {
	prefix string // of the elections' names

	mutex  sync.Mutex
	causes map[string]*cause
	total  Logged
}

// A cause is what lines were logged for.
type cause struct {
	first string // line
	lines int
	last  time.Time
}

func newJournal(prefix string) *journal {
	j := &journal{prefix: prefix}
	j.reset()
	return j
}

// reset begins to count anew.
func (j *journal) reset() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.causes, j.total = map[string]*cause{}, Logged{}
}

// read returns what was counted since the last reset.
func (j *journal) read() Logged {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	l := j.total
	l.Causes = len(j.causes)
	for _, c := range j.causes {
		if c.lines > l.Loud {
			l.Loud, l.Loudest = c.lines, c.first
		}
	}
	return l
}

// add counts a line.
func (j *journal) add(line string, now time.Time) {
	key := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, strings.ReplaceAll(line, j.prefix, ""))
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.total.Lines++
	c := j.causes[key]
	if c == nil {
		c = &cause{first: line}
		j.causes[key] = c
	} else if now.Sub(c.last) < repeated {
		j.total.Repeated++
	}
	c.lines++
	c.last = now
}

// A handler gives warnings and errors to a journal, without what a logger adds to each of
// its lines.
type handler struct {
	slog.Handler
	journal *journal
}

func (j *journal) logger() *slog.Logger { return slog.New(handler{slog.DiscardHandler, j}) }

func (h handler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString("; " + a.Key + ": " + a.Value.String())
		return true
	})
	h.journal.add(line.String(), time.Now())
	return nil
}

func (h handler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handler) WithGroup(string) slog.Handler      { return h }
