package zkconn

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

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
		{"an event without a request", func(_, _ func(), read func(int32, ...func())) { read(event) }, false},
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

// The client library answers a request twice when writing it fails, and blocks
// for ever if the request was its own. So it must learn from Read alone that a
// connection is broken.
func TestFailedWriteShowsInRead(t *testing.T) {
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
