package zkconn

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/elector-go/elector/backends/zookeeper/internal/zktest"
)

// connect starts a session that the client library would need an hour to give
// up.
func connect(t *testing.T, patience time.Duration, all ...*zktest.Server) *Conn {
	t.Helper()
	var hosts []string
	for _, s := range all {
		hosts = append(hosts, s.Address)
	}
	c, err := dial(hosts, nil, 2*time.Hour, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("nothing within a minute: %s", what)
	}
}

// A server that has gone dark is given up in time to find another one, whether
// it does not greet or does not answer.
func TestDarkServerIsLeft(t *testing.T) {
	silent, dark := zktest.NewServer(t, false), zktest.NewServer(t, true)
	c := connect(t, 50*time.Millisecond, silent, dark)
	await(t, c.ready, "a server that does not greet is left for the next one")
	if _, err := c.Sync("/a"); err == nil {
		t.Error("a request that was not answered returned no error")
	}
	await(t, dark.Left, "a server that does not answer is left")
	if dark.Requests.Load() != 1 {
		t.Errorf("%d requests were sent, want 1", dark.Requests.Load())
	}
}

// The client library pauses, and forgets what it has not sent, after a round
// through all servers and not before.
func TestHostsTakeTurns(t *testing.T) {
	s := newServers(t.Context(), []string{"a", "b"}, nil, time.Second)
	expect := func(host string, pause bool) {
		t.Helper()
		if got, p := s.Next(); got != host || p != pause {
			t.Errorf("got %s, pause %v; want %s, pause %v", got, p, host, pause)
		}
	}
	expect("a", false)
	expect("b", false)
	select {
	case <-s.exhausted:
		t.Error("the second was not tried yet")
	default:
	}
	expect("a", true)
	await(t, s.exhausted, "all have been tried")
	expect("b", false)
	s.Connected()
	expect("a", true) // it has hung up at once
	s.Connected()
	s.since = s.since.Add(-lasting)
	expect("b", false)
	expect("a", false)
	expect("b", true)
}

// A recorder is a connection on which what is to be read is given beforehand.
type recorder struct {
	net.Conn
	coming   []byte
	deadline time.Time
}

func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) Read(p []byte) (n int, err error) {
	n = copy(p, r.coming)
	r.coming = r.coming[n:]
	return n, nil
}
func (r *recorder) SetReadDeadline(t time.Time) error { r.deadline = t; return nil }

// An answer is missing from when its request is sent until it has come whole,
// whatever else comes and in whichever order the library's two loops run.
func TestMissingAnswers(t *testing.T) {
	const answer, event = 7, -1
	for _, test := range []struct {
		what    string
		steps   func(write, wait func(), read func(id int32, half ...func()))
		missing bool
	}{
		{"nothing", func(_, _ func(), _ func(int32, ...func())) {}, false},
		{"a request", func(write, _ func(), _ func(int32, ...func())) { write() }, true},
		{"an answer", func(write, _ func(), read func(int32, ...func())) { write(); read(answer) }, false},
		{"an event", func(write, _ func(), read func(int32, ...func())) { write(); read(event) }, true},
		{"an event to nobody", func(_, _ func(), read func(int32, ...func())) { read(event) }, false},
		{"one answer of two", func(write, _ func(), read func(int32, ...func())) { write(); write(); read(answer) }, true},
		{"both answers", func(write, wait func(), read func(int32, ...func())) {
			write()
			write()
			read(answer)
			wait()
			read(event)
			wait()
			read(answer)
		}, false},
		{"a request before the answer is waited for", func(write, wait func(), read func(int32, ...func())) {
			write()
			read(answer)
			write()
			wait()
		}, true},
		{"a request in the middle of an answer", func(write, wait func(), read func(int32, ...func())) {
			write()
			read(answer, write)
			wait()
		}, true},
	} {
		conn := &recorder{}
		w := &wire{Conn: conn, servers: newServers(t.Context(), nil, nil, time.Minute)}
		wait := func() { w.SetReadDeadline(time.Now().Add(24 * time.Hour)) }
		test.steps(func() { w.Write(make([]byte, 30)) }, wait, func(id int32, half ...func()) {
			body := append(binary.BigEndian.AppendUint32(nil, uint32(id)), make([]byte, 20)...)
			conn.coming = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
			io.ReadFull(w, make([]byte, 4))
			w.SetReadDeadline(time.Time{})
			io.ReadFull(w, make([]byte, 2))
			for _, f := range half {
				f()
			}
			io.ReadFull(w, make([]byte, 22))
			w.SetReadDeadline(time.Time{})
		})
		wait()
		if missing := time.Until(conn.deadline) < time.Hour; missing != test.missing {
			t.Errorf("after %s: an answer is missing: %v, want %v", test.what, missing, test.missing)
		}
	}
}

// The client library answers a request twice whose writing fails, and blocks for
// ever if it was its own: that a connection is broken it may learn from reading
// alone.
func TestFailedWriteIsToldByReading(t *testing.T) {
	ours, theirs := net.Pipe()
	theirs.Close()
	closed := make(chan struct{})
	w := &wire{Conn: telling{ours, closed}, servers: newServers(t.Context(), []string{"a"}, nil, time.Hour)}
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

// A fault of the client library must not hold up whoever closes.
func TestCloseEndsInAnyCase(t *testing.T) {
	c := &Conn{ended: nil} // never closed
	done := make(chan struct{})
	go func() {
		c.drain(time.Millisecond)
		close(done)
	}()
	await(t, done, "Close gives up")
}
