package stores

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// gateTo opens a gate from member 0 to member 1, and returns how to connect
// through it. The accepted ends come out of the channel.
func gateTo(t *testing.T, n *peerNetwork) (dial func() net.Conn, accepted <-chan net.Conn) {
	t.Helper()
	return greetingGateTo(t, n, 0, nil)
}

// greetingGateTo is gateTo for a gate from another member, or anybody, who greets.
func greetingGateTo(t *testing.T, n *peerNetwork, from int, greet func(*crossing) error) (dial func() net.Conn, accepted <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	conns := make(chan net.Conn, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	var port atomic.Int32
	port.Store(int32(l.Addr().(*net.TCPAddr).Port))
	g, err := n.newGate(from, 1, &port, greet)
	must(t, err)
	t.Cleanup(func() {
		n.close()
		l.Close()
		<-ended
	})
	return func() net.Conn {
		c, err := net.Dial("tcp", g.address())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}, conns
}

func take(t *testing.T, conns <-chan net.Conn) net.Conn {
	t.Helper()
	select {
	case c := <-conns:
		t.Cleanup(func() { c.Close() })
		return c
	case <-time.After(enough):
		t.Fatalf("no connection came through the gate within %v", enough)
		return nil
	}
}

func send(t *testing.T, c net.Conn, what string) {
	t.Helper()
	_, err := io.WriteString(c, what)
	must(t, err)
}

// arrives waits for what was sent.
func arrives(t *testing.T, c net.Conn, want string) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(enough)))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("%q and error %v came through the gate, want %q", got, err, want)
	}
}

// silent shows that nothing comes, and no end either.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	n, err := c.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes and error %v came through a network that is cut", n, err)
	}
}

func TestIsolationHoldsBackBothDirections(t *testing.T) {
	for name, isolated := range map[string]int{"who connects": 0, "who listens": 1} {
		t.Run(name, func(t *testing.T) {
			n := newPeerNetwork()
			dial, accepted := gateTo(t, n)
			client := dial()
			server := take(t, accepted)
			send(t, client, "a")
			arrives(t, server, "a")
			send(t, server, "b")
			arrives(t, client, "b")

			n.isolate(isolated, true)
			send(t, client, "c")
			send(t, server, "d")
			late := dial()
			send(t, late, "e")
			silent(t, server)
			silent(t, client)
			select {
			case <-accepted:
				t.Error("a new connection came through a network that is cut")
			default:
			}

			n.isolate(isolated, false)
			arrives(t, server, "c")
			arrives(t, client, "d")
			arrives(t, take(t, accepted), "e")
		})
	}
}

func TestIsolationHoldsBackTheEnd(t *testing.T) {
	n := newPeerNetwork()
	dial, accepted := gateTo(t, n)
	client := dial()
	server := take(t, accepted)
	n.isolate(1, true)
	must(t, server.Close())
	silent(t, client)
	n.isolate(1, false)
	must(t, client.SetReadDeadline(time.Now().Add(enough)))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the network was mended: %v, want the end", err)
	}
}

func TestIsolationOfAThird(t *testing.T) {
	n := newPeerNetwork()
	dial, accepted := gateTo(t, n)
	client := dial()
	n.isolate(2, true)
	send(t, client, "a")
	arrives(t, take(t, accepted), "a")
}

// While a member is isolated, those that connect are told from it by what they say first.
func TestIsolationOfAThirdThatIsUnknown(t *testing.T) {
	greet := func(c *crossing) error { return natsGreet(c, []string{"zero", "one", "two"}) }
	says := func(name string) string {
		return "CONNECT {}\r\nINFO {\"server_name\":\"" + name + "\"}\r\n"
	}
	n := newPeerNetwork()
	dial, accepted := greetingGateTo(t, n, anybody, greet)
	n.isolate(2, true)
	isolated, other := dial(), dial()
	send(t, isolated, says("two"))
	send(t, other, says("zero"))
	server := take(t, accepted)
	arrives(t, server, says("zero"))
	send(t, server, "a")
	arrives(t, other, "a")
	silent(t, isolated)
	select {
	case <-accepted:
		t.Error("a new connection came through a network that is cut")
	default:
	}
	n.isolate(2, false)
	arrives(t, take(t, accepted), says("two"))
}
