package aside

import (
	"context"
	"log/slog"
	"time"
)

// Callbacks returns a Queue for the callbacks of a Trace, which logs what becomes of them.
func Callbacks(log *slog.Logger, patience time.Duration) *Queue {
	return New(patience, func() {
		log.Warn("elector: a Trace callback has not returned; nothing waits for it")
	}, func(calls int, behind time.Duration) {
		log.Warn("elector: calls of Trace callbacks were lost, because one did not return", "calls", calls, "for", behind)
	})
}

// Call calls a callback, whose panic it logs.
func Call[Info any](log *slog.Logger, callback func(context.Context, Info), ctx context.Context, info Info) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("elector: a Trace callback panicked", "panic", p)
		}
	}()
	callback(ctx, info)
}
