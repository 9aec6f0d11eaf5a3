//go:build containers

package engine

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// These tests need Docker's engine: make test-containers.

func connected(t *testing.T) *testcontainers.DockerProvider {
	t.Helper()
	p, err := Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// listen takes connections, counts them and says nothing until the test ends.
func listen(t *testing.T) (address string, came *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came = new(atomic.Int32)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			t.Cleanup(func() { conn.Close() })
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String(), came
}

func TestSilentRegistry(t *testing.T) {
	defer func(was time.Duration) { firstWord = was }(firstWord)
	firstWord = time.Second
	p := connected(t)
	registry, came := listen(t)
	err := Have(t.Context(), p, registry+"/one:1")
	if err == nil || !strings.Contains(err.Error(), "silent for 1s") {
		t.Errorf("it says %v", err)
	}
	tried := came.Load()
	if tried == 0 {
		t.Fatal("the registry was not asked: this test shows nothing")
	}
	// Neither this image nor another one of the registry is tried again.
	for _, name := range []string{"/one:1", "/two:1"} {
		if err := Have(t.Context(), p, registry+name); err == nil || !strings.Contains(err.Error(), "silent") {
			t.Errorf("the second time it says %v", err)
		}
	}
	if again := came.Load(); again != tried {
		t.Errorf("the registry was asked again: %d connections, first %d", again, tried)
	}
}

func TestNoRegistry(t *testing.T) {
	p := connected(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	vacant := l.Addr().String()
	l.Close()
	for _, name := range []string{"/one:1", "/two:1"} {
		if err := Have(t.Context(), p, vacant+name); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("it says %v", err)
		}
	}
}

// What the caller gives up is not held against the registry.
func TestCancelledPull(t *testing.T) {
	p := connected(t)
	registry, came := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for came.Load() == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if err := Have(ctx, p, registry+"/one:1"); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("it says %v", err)
	}
	if len(refusals) > 0 && refusals[registry] != nil {
		t.Errorf("it remembers %v", refusals[registry])
	}
}

func TestStandInIsNotPulled(t *testing.T) {
	if err := Have(t.Context(), connected(t), StandIn("nothing", "0")); err == nil || !strings.Contains(err.Error(), "run make images") {
		t.Errorf("it says %v", err)
	}
}
