package wire

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/stores"
)

const watchdog = 30 * time.Second

// listen is a store that does with each connection what it is told. It ends
// with the test.
func listen(t *testing.T, serve func(*net.TCPConn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn.(*net.TCPConn))
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		select {
		case <-done:
		case <-time.After(watchdog):
			t.Error("the store does not end")
		}
	})
	return l.Addr().String()
}

func start(t *testing.T, kind, target string) *Proxy {
	p, err := Start(kind, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func dial(t *testing.T, address string) *net.TCPConn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(watchdog))
	return conn.(*net.TCPConn)
}

// await waits until the counts are as wanted.
func await(t *testing.T, p *Proxy, what string, good func(Counts) bool) {
	t.Helper()
	for tick, deadline := time.NewTicker(time.Millisecond), time.Now().Add(watchdog); !good(p.Counts()); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%+v; want %s", p.Counts(), what)
		}
	}
}

// Everything arrives as it was sent, in both directions, and is counted by the
// time it does.
func TestEverythingPasses(t *testing.T) {
	sent, answer := session(), bytes.Repeat([]byte("answer"), 20000)
	got := make(chan []byte, 2)
	target := listen(t, func(conn *net.TCPConn) {
		b, _ := io.ReadAll(conn) // up to the end of this direction
		got <- b
		conn.Write(answer)
	})
	p := start(t, stores.ZooKeeper, target)
	for i := range int64(2) {
		before := p.Counts()
		conn := dial(t, p.Address())
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		conn.CloseWrite()
		back, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(back, answer) {
			t.Fatalf("%d bytes came back, error %v; want %d as they were", len(back), err, len(answer))
		}
		if b := <-got; !bytes.Equal(b, sent) {
			t.Errorf("the store got %x; want %x", b, sent)
		}
		await(t, p, "no connection open", func(c Counts) bool { return c.Open == 0 })
		want := Counts{Requests: 6, Pings: 2, Sent: int64(len(sent)), Received: int64(len(answer)), Opened: 1}
		if c := p.Counts().Since(before); c != want || c.Bytes() != want.Sent+want.Received {
			t.Errorf("connection %d: %+v; want %+v", i+1, c, want)
		}
	}
	if c := p.Counts(); c.Opened != 2 || c.Requests != 12 {
		t.Errorf("in all %+v; want 2 connections, 12 requests", c)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	target := listen(t, func(conn *net.TCPConn) { go io.Copy(io.Discard, conn); <-t.Context().Done() })
	p := start(t, stores.Etcd, target)
	one, two := dial(t, p.Address()), dial(t, p.Address())
	await(t, p, "2 opened, 2 open", func(c Counts) bool { return c.Opened == 2 && c.Open == 2 })
	one.SetLinger(0) // an abrupt end
	one.Close()
	await(t, p, "2 opened, 1 open", func(c Counts) bool { return c.Opened == 2 && c.Open == 1 })
	p.Close()
	if n, err := two.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a connection outlives its proxy")
	}
	if c := p.Counts(); c.Opened != 2 || c.Open != 0 {
		t.Errorf("%+v; want 2 opened, none open", c)
	}
	if _, err := net.Dial("tcp", p.Address()); err == nil {
		t.Error("the proxy listens after Close")
	}
}

// A store that is not there closes the connection, as it would without a proxy.
func TestNoStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := l.Addr().String()
	l.Close()
	p := start(t, stores.Etcd, target)
	if _, err := io.ReadAll(dial(t, p.Address())); err != nil {
		t.Error(err)
	}
	await(t, p, "1 opened, none open", func(c Counts) bool { return c.Opened == 1 && c.Open == 0 })
}

// What cannot be decoded passes all the same, and Close says so.
func TestUndecodable(t *testing.T) {
	// The struct hides what would splice, with pipes that stay open for a while.
	target := listen(t, func(conn *net.TCPConn) { io.Copy(struct{ io.Writer }{conn}, conn) })
	p := start(t, stores.Postgres, target)
	conn := dial(t, p.Address())
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	conn.CloseWrite()
	if back, err := io.ReadAll(conn); err != nil || string(back) != "GET / HTTP/1.1\r\n\r\n" {
		t.Errorf("%q came back, error %v", back, err)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "postgres store at "+target) {
		t.Errorf("error %v; want one that names the store", err)
	}
	if _, err := Start("clay tablets", target); err == nil {
		t.Error("a proxy for a kind of store that it does not know")
	}
}

func TestPlus(t *testing.T) {
	a, b := Counts{1, 2, 3, 4, 5, 6}, Counts{10, 20, 30, 40, 50, 60}
	if got, want := a.Plus(b), (Counts{11, 22, 33, 44, 55, 66}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}
