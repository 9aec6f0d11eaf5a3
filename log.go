package elector

import (
	"context"
	"log/slog"
)

// guarded keeps a panic in the user's slog handler, on a goroutine of this package,
// from ending the process. The record is lost.
type guarded struct{ slog.Handler }

func (g guarded) Handle(ctx context.Context, r slog.Record) error {
	defer func() { _ = recover() }()
	return g.Handler.Handle(ctx, r)
}

func (g guarded) Enabled(ctx context.Context, level slog.Level) bool {
	defer func() { _ = recover() }()
	return g.Handler.Enabled(ctx, level)
}

func (g guarded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guarded{g.Handler.WithAttrs(attrs)}
}

func (g guarded) WithGroup(name string) slog.Handler { return guarded{g.Handler.WithGroup(name)} }
