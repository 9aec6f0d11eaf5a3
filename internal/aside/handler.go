package aside

import (
	"context"
	"log/slog"
	"time"
)

// A handler writes through a Queue. It keeps a panic in the user's handler from ending the
// process; the record is lost.
type handler struct {
	slog.Handler
	queue *Queue
}

// Handler returns a slog.Handler that calls h and waits for it for as long as patience at
// most: see [Queue]. If records were lost, h gets one that says how many.
func Handler(h slog.Handler, patience time.Duration) slog.Handler {
	return handler{h, New(patience, nil, func(records int, behind time.Duration) {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "elector: lines of this log were lost, because it was not written", 0)
		r.AddAttrs(slog.Int("lines", records), slog.Duration("for", behind))
		handle(h, context.Background(), r)
	})}
}

// Flush waits until a logger of [Handler] has written all its lines, for as long as limit at
// most.
func Flush(l *slog.Logger, limit time.Duration) { l.Handler().(handler).queue.Flush(limit) }

func handle(h slog.Handler, ctx context.Context, r slog.Record) {
	defer func() { _ = recover() }()
	if h.Enabled(ctx, r.Level) {
		_ = h.Handle(ctx, r) // nobody gets its error
	}
}

func (l handler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	l.queue.Do(func() { handle(l.Handler, ctx, r) })
	return nil
}

func (l handler) Enabled(ctx context.Context, level slog.Level) bool {
	defer func() { _ = recover() }()
	return l.Handler.Enabled(ctx, level)
}

func (l handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{l.Handler.WithAttrs(attrs), l.queue}
}

func (l handler) WithGroup(name string) slog.Handler {
	return handler{l.Handler.WithGroup(name), l.queue}
}
