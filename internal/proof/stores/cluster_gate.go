package stores

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A peerNetwork is what connects the members of a cluster: every connection from
// one to another goes through a gate. A member that is isolated is behind a
// network that has been cut. Nothing is refused or broken by that: connections
// are silent, new ones too, and go on with what was held back when the member
// joins again, as TCP does when a network was down for a while.
type peerNetwork struct {
	all sync.WaitGroup // of listeners and connections

	mutex     sync.Mutex
	isolated  map[int]bool
	changed   chan struct{} // closed and replaced by each change
	closed    bool
	listeners []net.Listener
	open      map[net.Conn]bool
}

// anybody is who has connected, while that is not known.
const anybody = -1

var errNetworkClosed = errors.New("the cluster was stopped")

func newPeerNetwork() *peerNetwork {
	return &peerNetwork{isolated: map[int]bool{}, changed: make(chan struct{}), open: map[net.Conn]bool{}}
}

// isolate cuts a member off, or joins it again.
func (n *peerNetwork) isolate(member int, off bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.isolated[member] = off
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *peerNetwork) isIsolated(member int) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.isolated[member]
}

// pass blocks while the network is cut between two members. If it is not known
// who connects, it is taken for the isolated member.
func (n *peerNetwork) pass(from, to int) error {
	for {
		n.mutex.Lock()
		cut := n.isolated[from] || n.isolated[to]
		if from == anybody {
			for _, off := range n.isolated {
				cut = cut || off
			}
		}
		closed, changed := n.closed, n.changed
		n.mutex.Unlock()
		switch {
		case closed:
			return errNetworkClosed
		case !cut:
			return nil
		}
		<-changed
	}
}

// close breaks every connection, and returns when nothing is left of them.
func (n *peerNetwork) close() {
	n.mutex.Lock()
	n.closed = true
	for _, l := range n.listeners {
		l.Close()
	}
	for c := range n.open {
		c.Close()
	}
	close(n.changed)
	n.changed = make(chan struct{})
	n.mutex.Unlock()
	n.all.Wait()
}

func (n *peerNetwork) keep(c net.Conn) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.closed {
		c.Close()
		return errNetworkClosed
	}
	n.open[c] = true
	return nil
}

func (n *peerNetwork) drop(c net.Conn) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.open, c)
	c.Close()
}

// A peerGate is where one member of a cluster is reached by another one, or by all
// others.
type peerGate struct {
	network  *peerNetwork
	listener net.Listener
	from     func(net.Addr) int // who connects from there, if that is known
	to       int
	server   func() string // where the member listens: it may be restarted on another port

	// greet sends on what comes first, and may change it. If from does not know who
	// connects, greet finds it out before it sends on what matters: while a member is
	// isolated, the others may lose a connection to each other and make another one.
	// It is nil if all is sent on as it comes.
	greet func(c *crossing) error
}

// newGate makes a gate on a free port of 127.0.0.1, where it stays until the
// network is closed.
func (n *peerNetwork) newGate(from, to int, server *atomic.Int32, greet func(*crossing) error) (*peerGate, error) {
	return n.newGateAt("127.0.0.1:0", func(net.Addr) int { return from }, to, func() string { return loopback(int(server.Load())) }, greet)
}

// newGateAt makes a gate at an address.
func (n *peerNetwork) newGateAt(address string, from func(net.Addr) int, to int, server func() string, greet func(*crossing) error) (*peerGate, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mutex.Lock()
	n.listeners = append(n.listeners, l)
	n.mutex.Unlock()
	g := &peerGate{n, l, from, to, server, greet}
	n.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			n.all.Go(func() { g.serve(client) })
		}
	})
	return g, nil
}

func (g *peerGate) port() int { return g.listener.Addr().(*net.TCPAddr).Port }

func (g *peerGate) address() string { return loopback(g.port()) }

// A crossing is one connection through a gate.
type crossing struct {
	gate    *peerGate
	from    atomic.Int32 // a member, or anybody
	conn    net.Conn     // of who connects
	client  *bufio.Reader
	server  net.Conn      // nil until something is sent on
	answers chan struct{} // closed when the server says no more
}

func (c *crossing) pass() error { return c.gate.network.pass(int(c.from.Load()), c.gate.to) }

func (g *peerGate) serve(client net.Conn) {
	if g.network.keep(client) != nil {
		return
	}
	defer g.network.drop(client)
	c := &crossing{gate: g, conn: client, client: bufio.NewReader(client)}
	c.from.Store(int32(g.from(client.RemoteAddr())))
	greet := g.greet
	if greet == nil {
		greet = (*crossing).reach
	}
	err := greet(c)
	if c.server == nil {
		return // it is down, and the client that connects sees that
	}
	defer g.network.drop(c.server)
	if err == nil {
		c.carry(c.server, c.client)
	}
	c.server.Close()
	<-c.answers
}

// send sends on what a greeting says.
func (c *crossing) send(some []byte) error {
	if err := c.reach(); err != nil {
		return err
	}
	_, err := c.server.Write(some)
	return err
}

// reach returns when the network is not cut and the member is connected.
func (c *crossing) reach() error {
	if err := c.pass(); err != nil || c.server != nil {
		return err
	}
	server, err := c.dial()
	if err != nil {
		return err
	}
	if err := c.gate.network.keep(server); err != nil {
		return err
	}
	c.server, c.answers = server, make(chan struct{})
	go func() {
		defer close(c.answers)
		c.carry(c.conn, server)
		c.conn.Close()
	}()
	return nil
}

// dial connects to the member. A connection that is refused is tried again for a
// while, as a member that connects would do: a new leader of ZooKeeper's may not yet
// listen, and a follower whose connection was taken and then ends elects again,
// which takes seconds.
func (c *crossing) dial() (conn net.Conn, err error) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for range 100 {
		if conn, err = net.Dial("tcp", c.gate.server()); err == nil {
			return conn, nil
		}
		<-again.C
		if err := c.pass(); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// carry takes what comes from one side to the other, unless and until the
// network is cut. That one side has ended is told the other in the same way.
func (c *crossing) carry(to io.Writer, from io.Reader) {
	some := make([]byte, 32<<10)
	for {
		n, err := from.Read(some)
		if c.pass() != nil {
			return
		}
		if _, wrong := to.Write(some[:n]); err != nil || wrong != nil {
			return
		}
	}
}
