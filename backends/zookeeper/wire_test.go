package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A fake is a server that gives sessions, or not even that, and answers no
// request.
type fake struct {
	listener net.Listener
	all      sync.WaitGroup
	requests atomic.Int32
	left     chan struct{} // gets a value for each connection that the client has closed

	mutex sync.Mutex
	open  []net.Conn
}

const greets, saysNothing = true, false

func newFake(t *testing.T, greets bool) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener: l, left: make(chan struct{}, 1000)}
	f.all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mutex.Lock()
			f.open = append(f.open, conn)
			f.mutex.Unlock()
			f.all.Go(func() { f.serve(conn, greets) })
		}
	})
	t.Cleanup(f.stop)
	return f
}

func (f *fake) address() string { return f.listener.Addr().String() }

func (f *fake) stop() {
	f.listener.Close()
	f.mutex.Lock()
	for _, conn := range f.open {
		conn.Close()
	}
	f.mutex.Unlock()
	f.all.Wait()
}

func (f *fake) serve(conn net.Conn, greets bool) {
	defer conn.Close()
	for first := true; ; first = false {
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); err != nil {
			f.left <- struct{}{}
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		switch {
		case !first:
			f.requests.Add(1)
		case greets: // version, time-out as asked for, session, password
			answer := binary.BigEndian.AppendUint32(nil, 36)
			answer = append(answer, 0, 0, 0, 0)
			answer = append(answer, request[12:16]...)
			answer = binary.BigEndian.AppendUint64(answer, 1)
			answer = binary.BigEndian.AppendUint32(answer, 16)
			conn.Write(append(answer, make([]byte, 16)...))
		}
	}
}

// connect begins a session that would take the client library an hour to give
// up.
func connect(t *testing.T, patience time.Duration, fakes ...*fake) *Backend {
	t.Helper()
	var hosts []string
	for _, f := range fakes {
		hosts = append(hosts, f.address())
	}
	s, err := begin(hosts, 2*time.Hour, newWires(hosts, nil, patience))
	if err != nil {
		t.Fatal(err)
	}
	b := newBackend(s, "", "zookeeper://h")
	t.Cleanup(func() { b.Close() })
	return b
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
	silent, dark := newFake(t, saysNothing), newFake(t, greets)
	b := connect(t, 50*time.Millisecond, silent, dark)
	await(t, b.session.ready, "a server that does not greet is left for the next one")
	_, err := b.Load(t.Context(), "a")
	if !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	await(t, dark.left, "a server that does not answer is left")
	if dark.requests.Load() != 1 {
		t.Errorf("%d requests were sent, want 1", dark.requests.Load())
	}
}

// Calls that were given up go on in the client library: not without end.
func TestHangingCallsAreBounded(t *testing.T) {
	server := newFake(t, greets)
	b := connect(t, time.Hour, server)
	await(t, b.session.ready, "the server greets")
	for b.session.hanging.Load() < maxHanging {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := b.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want context.DeadlineExceeded", err)
		}
		cancel()
	}
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	b.Close() // ends them: see TestMain
}

// Every call, and every Watch, ends with its context, and with its handle.
func TestCallsEnd(t *testing.T) {
	server := newFake(t, greets)
	b := connect(t, time.Hour, server)
	await(t, b.session.ready, "the server greets")
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
	await(t, server.left, "Close closes a connection on which nothing comes")
}

// The client library pauses, and forgets what it has not sent, after a round
// through all servers and not before.
func TestHostsTakeTurns(t *testing.T) {
	w := newWires([]string{"a", "b"}, nil, time.Second)
	expect := func(host string, pause bool) {
		t.Helper()
		if got, p := w.Next(); got != host || p != pause {
			t.Errorf("got %s, pause %v; want %s, pause %v", got, p, host, pause)
		}
	}
	expect("a", false)
	expect("b", false)
	select {
	case <-w.exhausted:
		t.Error("the second was not tried yet")
	default:
	}
	expect("a", true)
	await(t, w.exhausted, "all have been tried")
	expect("b", false)
	w.Connected()
	expect("a", true) // it has hung up at once
	w.Connected()
	w.since = w.since.Add(-lasting)
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
		w := &wire{Conn: conn, wires: newWires(nil, nil, time.Minute)}
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
