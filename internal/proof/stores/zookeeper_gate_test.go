package stores

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"sync"
	"testing"
	"time"
)

// A gate stands between clients and a ZooKeeper server. It can be shut, and it
// counts requests.
type gate struct {
	listener net.Listener
	server   string
	all      sync.WaitGroup

	mutex  sync.Mutex
	shut   bool
	open   map[net.Conn]bool
	counts map[string]int
}

// newGate takes TLS from clients if config is not nil.
func newGate(t testing.TB, server string, config *tls.Config) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	g := &gate{listener: l, server: server, open: map[net.Conn]bool{}, counts: map[string]int{}}
	g.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			g.all.Go(func() { g.serve(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.set(true)
		g.all.Wait()
	})
	return g
}

func (g *gate) address() string { return g.listener.Addr().String() }

// set shuts the gate, which cuts every connection, or opens it.
func (g *gate) set(shut bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.shut = shut
	if shut {
		for c := range g.open {
			c.Close()
		}
	}
}

func (g *gate) keep(c net.Conn) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !g.shut {
		g.open[c] = true
	}
	return !g.shut
}

func (g *gate) drop(c net.Conn) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	delete(g.open, c)
	c.Close()
}

func (g *gate) serve(client net.Conn) {
	defer g.drop(client)
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	defer g.drop(server)
	if !g.keep(client) || !g.keep(server) {
		return
	}
	g.all.Go(func() {
		// Not from socket to socket: the pipes that this takes stay open.
		io.Copy(struct{ io.Writer }{client}, struct{ io.Reader }{server})
		client.Close()
	})
	for greeted := false; ; greeted = true {
		head := make([]byte, 4)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if greeted {
			g.count(body)
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// count counts a request by its kind.
func (g *gate) count(body []byte) {
	kind := map[uint32]string{3: "exists", 4: "get", 9: "sync", 11: "ping", 14: "multi", 101: "watches"}[binary.BigEndian.Uint32(body[4:])]
	if (kind == "exists" || kind == "get") && body[len(body)-1] == 1 {
		kind += " and watch"
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if kind != "ping" { // it has a rhythm of its own
		g.counts[kind]++
	}
}

// since returns what was sent since it was last asked.
func (g *gate) since() map[string]int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	counts := maps.Clone(g.counts)
	clear(g.counts)
	return counts
}

// await waits until that many requests of a kind were sent since it was asked.
func (g *gate) await(t testing.TB, kind string, n int) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for overdue := time.After(enough); ; {
		g.mutex.Lock()
		sent := g.counts[kind]
		g.mutex.Unlock()
		if sent >= n {
			return
		}
		select {
		case <-again.C:
		case <-overdue:
			t.Fatalf("%d requests %q were sent within %v, want %d", sent, kind, enough, n)
		}
	}
}
