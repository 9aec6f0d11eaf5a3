package elector_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

// panicking is a log handler with a bug.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("a bug in the log handler") }
func (p panicking) WithAttrs([]slog.Attr) slog.Handler      { return p }

// A log handler that panics ends neither the process nor the lease: leading,
// renewing and resigning all log something.
func TestLogHandlerPanics(t *testing.T) {
	e, err := elector.New(memory.New(), "log", &elector.Options{Logger: slog.New(panicking{})})
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
