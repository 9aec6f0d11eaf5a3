package elector_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

var sink time.Time

// BenchmarkNow is what a Check is measured against.
func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		sink = time.Now()
	}
}

func BenchmarkCheck(b *testing.B) {
	l := lead(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	e, _ := candidate(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Token(); err != nil {
			b.Fatal(err)
		}
	}
}

func lead(tb testing.TB) *elector.Lease {
	_, l := candidate(tb)
	return l
}

func candidate(tb testing.TB) (*elector.Elector, *elector.Lease) {
	e, err := elector.New(memory.New(), "bench", &elector.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	l, err := e.Campaign(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return e, l
}
