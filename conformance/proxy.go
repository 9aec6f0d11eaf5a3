package conformance

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/elector-go/elector/backends"
)

// A Fault is what happens to the requests of a handle: see Harness.OpenFaulty.
type Fault int32

// With LoseRequests and LoseAnswers each request fails in the client: in the
// first case before it reaches the store, in the second after the store has
// done what it asks for.
const (
	NoFault Fault = iota
	LoseRequests
	LoseAnswers
)

// ThroughProxy returns a Harness.OpenFaulty for a store that listens on a TCP
// address. open opens a handle on the same store at another address, where a
// proxy listens. A fault closes the connections on which something is lost.
func ThroughProxy(address string, open func(t testing.TB, through string) backends.Backend) func(testing.TB) (backends.Backend, func(Fault)) {
	return func(t testing.TB) (backends.Backend, func(Fault)) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := &proxy{listener: l, address: address, open: map[net.Conn]bool{}}
		p.running.Go(p.accept)
		t.Cleanup(p.close)
		return open(t, l.Addr().String()), func(f Fault) { p.fault.Store(int32(f)) }
	}
}

// A proxy passes on what clients and the store say.
type proxy struct {
	listener net.Listener
	address  string // of the store
	fault    atomic.Int32
	running  sync.WaitGroup

	mutex  sync.Mutex
	closed bool
	open   map[net.Conn]bool
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() {
			defer p.leave(client)
			if !p.enter(client) {
				return
			}
			store, err := net.Dial("tcp", p.address)
			if err != nil {
				return
			}
			defer p.leave(store)
			if p.enter(store) {
				p.running.Go(func() { p.pass(store, client, LoseRequests) })
				p.pass(client, store, LoseAnswers)
			}
		})
	}
}

// enter notes an open connection. It returns false if the proxy is closed.
func (p *proxy) enter(c net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.open[c] = true
	return !p.closed
}

func (p *proxy) leave(c net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.open, c)
	c.Close()
}

// pass copies what one side says to the other, until either is closed or the
// fault is to lose it.
func (p *proxy) pass(to, from net.Conn, lost Fault) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || Fault(p.fault.Load()) == lost {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) close() {
	p.mutex.Lock()
	p.closed = true
	p.listener.Close()
	for c := range p.open {
		c.Close()
	}
	p.mutex.Unlock()
	p.running.Wait()
}
