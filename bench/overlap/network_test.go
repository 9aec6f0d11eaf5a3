package overlap

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

const watchdog = 30 * time.Second

// An echo is a server that answers each line with the same line, and keeps what
// it was sent.
type echo struct {
	listener net.Listener
	mutex    sync.Mutex
	lines    []string
}

func newEcho(t *testing.T) *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: l}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				for s := bufio.NewScanner(conn); s.Scan(); {
					e.mutex.Lock()
					e.lines = append(e.lines, s.Text())
					e.mutex.Unlock()
					io.WriteString(conn, s.Text()+"\n")
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return e
}

func (e *echo) got() string {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return strings.Join(e.lines, " ")
}

// A caller is a client of the echo.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, address string) *caller {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) say(line string) {
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) hear(want string) {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(watchdog))
	if line, err := c.in.ReadString('\n'); err != nil || line != want+"\n" {
		c.t.Fatalf("heard %q, error %v; want %q", line, err, want)
	}
}

// hearNothing shows that the connection is still open and says nothing.
func (c *caller) hearNothing() {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	line, err := c.in.ReadString('\n')
	if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		c.t.Fatalf("heard %q, error %v; want silence on an open connection", line, err)
	}
}

func (n *way) awaitSwallowed(t *testing.T, want int64) {
	t.Helper()
	for tick, deadline := time.NewTicker(time.Millisecond), time.Now().Add(watchdog); n.swallowed() < want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes were swallowed; want %d", n.swallowed(), want)
		}
	}
}

func TestCut(t *testing.T) {
	server := newEcho(t)
	n, err := newWay(server.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	there := dial(t, n.Address())
	there.say("one")
	there.hear("one")
	if err := n.cut(); err != nil {
		t.Fatal(err)
	}
	there.say("two")
	n.awaitSwallowed(t, 4)
	later := dial(t, n.Address())
	later.say("three")
	n.awaitSwallowed(t, 10)
	there.hearNothing()
	later.hearNothing()
	if got := server.got(); got != "one" || n.leaked.Load() != 0 {
		t.Errorf("the server got %q, %d chunks leaked; want only what was said before the cut", got, n.leaked.Load())
	}
}

func TestSlowThenCut(t *testing.T) {
	server := newEcho(t)
	n, err := newWay(server.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	c := dial(t, n.Address())
	c.say("hello")
	c.hear("hello")

	const late = 300 * time.Millisecond
	var took time.Duration
	next, err := n.hold([]byte("renew"))
	if err != nil {
		t.Fatal(err)
	}
	cut := make(chan error, 1)
	go func() {
		var err error
		took, err = n.slowThenCut(next, late, watchdog)
		cut <- err
	}()
	// Other requests pass until the renewal comes.
	for range 3 {
		c.say("read")
		c.hear("read")
	}
	before := time.Now()
	c.say("renew 1")
	c.hear("renew 1")
	if passed := time.Since(before); passed < late {
		t.Errorf("the answer came after %v; want no earlier than %v", passed, late)
	}
	if err := <-cut; err != nil {
		t.Fatal(err)
	}
	if took < late {
		t.Errorf("it reports that the answer took %v; want no less than %v", took, late)
	}
	c.say("renew 2")
	n.awaitSwallowed(t, 8)
	c.hearNothing()
	if got := server.got(); got != "hello read read read renew 1" || n.leaked.Load() != 0 {
		t.Errorf("the server got %q, %d chunks leaked; want nothing after the first renewal", got, n.leaked.Load())
	}
}

func TestNoRenewalIsAnError(t *testing.T) {
	server := newEcho(t)
	n, err := newWay(server.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	next, err := n.hold([]byte("renew"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.slowThenCut(next, time.Second, time.Millisecond); err == nil || !strings.Contains(err.Error(), "no renewal") {
		t.Errorf("error %v; want that no renewal was seen", err)
	}
}
