package gcs

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/elector-go/elector/backends"
)

// Calls that look at no context are given up, and bounded.
func TestCallsThatGoOnAreBounded(t *testing.T) {
	b := newBackend("bucket", DefaultPrefix, func() {})
	defer b.Close()
	release := make(chan struct{})
	hangs := func(context.Context) (int, error) { <-release; return 0, nil }
	started := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	for range maxWaiting {
		go await(ctx, b, func(ctx context.Context) (int, error) { started <- struct{}{}; return hangs(ctx) })
	}
	for range maxWaiting {
		<-started
	}
	cancel() // all are given up, and go on
	_, err := await(t.Context(), b, hangs)
	if !errors.Is(err, errStuck) {
		t.Fatalf("call %d: %v", maxWaiting+1, err)
	}
	if err := b.explain(t.Context(), "reading", err); !errors.Is(err, backends.ErrUnavailable) {
		t.Error(err)
	}
	close(release)
	for b.waiting.Load() > 0 {
		runtime.Gosched()
	}
	if _, err := await(t.Context(), b, hangs); err != nil {
		t.Errorf("after they have ended: %v", err)
	}
}
