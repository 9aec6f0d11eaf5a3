package zookeeper

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// The client library answers a request twice whose writing fails, and blocks for
// ever if it was its own: that a connection is broken it may learn from reading
// alone.
func TestFailedWriteIsToldByReading(t *testing.T) {
	ours, theirs := net.Pipe()
	theirs.Close()
	closed := make(chan struct{})
	w := &wire{Conn: telling{ours, closed}, wires: newWires([]string{"a"}, nil, time.Hour)}
	if n, err := w.Write([]byte("request")); n != 7 || err != nil {
		t.Errorf("Write returns %d, %v", n, err)
	}
	await(t, closed, "a connection is closed that cannot be written to")
	if _, err := w.Read(make([]byte, 1)); err == nil {
		t.Error("Read returns no error")
	}
}

type telling struct {
	net.Conn
	closed chan struct{}
}

func (c telling) Close() error {
	close(c.closed)
	return c.Conn.Close()
}

// A reading that others have begun may have been answered before an acquisition
// was made, and says nothing of its mark.
func TestOldReadingDoesNotDepose(t *testing.T) {
	server := newFake(t, greets) // answers nothing, so a second reading does not end
	b := connect(t, time.Hour, server)
	await(t, b.session.ready, "the server greets")
	lost, err := b.session.connected()
	if err != nil {
		t.Fatal(err)
	}
	old := &reading{done: make(chan struct{}), lost: lost}
	b.readings[leaderPath(b.path("a"))] = old
	ended, cancel := context.WithCancel(t.Context())
	ctx := asked{ended, make(chan struct{}, 100)}
	result := make(chan error, 1)
	go func() { result <- b.WatchPresence(ctx, "a", record) }()
	await(t, ctx.waits, "it waits for the reading that others have begun")
	close(old.done) // nothing was there
	for server.requests.Load() == 0 {
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

// An asked context tells when somebody waits for its end.
type asked struct {
	context.Context
	waits chan struct{}
}

func (a asked) Done() <-chan struct{} {
	a.waits <- struct{}{}
	return a.Context.Done()
}

// A fault of the client library must not hold up whoever closes.
func TestCloseEndsInAnyCase(t *testing.T) {
	s := &session{ended: nil} // never closed
	done := make(chan struct{})
	go func() {
		s.drain(time.Millisecond)
		close(done)
	}()
	await(t, done, "Close gives up")
}
