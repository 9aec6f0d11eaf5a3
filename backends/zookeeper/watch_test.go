package zookeeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zkconn"
	"github.com/elector-go/elector/backends/zookeeper/internal/zktest"
)

// connect makes a backend whose client waits for an answer for an hour.
func connect(t *testing.T, server *zktest.Server) *Backend {
	t.Helper()
	conn, err := zkconn.Dial([]string{server.Address}, nil, 6*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b := newBackend("zookeeper://h", "")
	b.conn = conn
	t.Cleanup(func() { b.Close() })
	if err := conn.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// Every call, and every Watch, ends with its context, and with its handle.
func TestCallsEnd(t *testing.T) {
	server := zktest.NewServer(t, true)
	b := connect(t, server)
	calls := map[string]func(ctx context.Context) error{
		"Load":          func(ctx context.Context) error { _, err := b.Load(ctx, "a"); return err },
		"Swap":          func(ctx context.Context) error { _, err := b.Swap(ctx, "a", backends.Record{}, record); return err },
		"Watch":         func(ctx context.Context) error { return b.Watch(ctx, "a", func(backends.Record) {}) },
		"WatchPresence": func(ctx context.Context) error { return b.WatchPresence(ctx, "a", record) },
	}
	for what, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%s whose deadline passes: got %v", what, err)
		}
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := call(ctx); !errors.Is(err, context.Canceled) || backends.Permanent(err) {
			t.Errorf("%s that is cancelled: got %v", what, err)
		}
	}
	results := make(chan error, len(calls))
	for _, call := range calls {
		go func() { results <- call(context.Background()) }()
	}
	b.Close()
	for range calls {
		if err := <-results; !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("a call whose handle is closed: got %v", err)
		}
	}
	select {
	case <-server.Left:
	case <-time.After(time.Minute):
		t.Error("Close does not close the connection")
	}
}

// A reading that another caller began may have been answered before an
// acquisition was made, and is no evidence about its mark.
func TestOldReadingDoesNotDepose(t *testing.T) {
	server := zktest.NewServer(t, true) // answers nothing, so a second reading does not end
	b := connect(t, server)
	lost, err := b.conn.Connected()
	if err != nil {
		t.Fatal(err)
	}
	path := leaderPath(b.path("a"))
	old := &reading{done: make(chan struct{}), lost: lost}
	b.readings[path] = old
	ended, cancel := context.WithCancel(t.Context())
	ctx := asked{ended, make(chan struct{}, 100)}
	result := make(chan error, 1)
	go func() { result <- b.attend(ctx, path, record.Attempt.Nonce) }()
	<-ctx.waits     // for the other caller's reading
	close(old.done) // the znode did not exist
	for server.Requests.Load() == 0 {
		select {
		case err := <-result:
			t.Fatalf("an old reading deposes: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-result; errors.Is(err, backends.ErrDeposed) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// An asked context reports that a caller waits for its end.
type asked struct {
	context.Context
	waits chan struct{}
}

func (a asked) Done() <-chan struct{} {
	a.waits <- struct{}{}
	return a.Context.Done()
}
