package network

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// connectWithin is how long the store has to take a connection.
const connectWithin = 10 * time.Second

// A connection is one of a client, and ours to the store for it.
type connection struct {
	client, store *net.TCPConn
	links         sync.WaitGroup // one for each direction
}

// serve connects a client to the store, unless the fault is that it cannot.
func (p *Proxy) serve(client *net.TCPConn) {
	c := &connection{client: client}
	if !p.keep(c) {
		return
	}
	p.stall(c)
	conn, err := net.DialTimeout("tcp", p.upstream, connectWithin)

	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err != nil || !p.connections[c] { // or it was cut meanwhile
		client.Close()
		delete(p.connections, c)
		if conn != nil {
			conn.Close()
		}
		return
	}
	c.store = conn.(*net.TCPConn)
	p.opened++
	name := strconv.Itoa(p.opened)
	c.links.Add(2)
	p.toxics.StartLink(p.server, name+" requests", source{client, &p.holdsRequests, &p.requests}, sink{c, c.store}, stream.Upstream)
	p.toxics.StartLink(p.server, name+" replies", source{c.store, &p.holdsReplies, &p.replies}, sink{c, client}, stream.Downstream)
	p.serving.Go(func() {
		c.links.Wait()
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.connections, c)
	})
}

// stall holds up a new connection while the fault is SlowToConnect.
func (p *Proxy) stall(c *connection) {
	p.mutex.Lock()
	for until := time.Now().Add(slowness); p.fault == SlowToConnect && p.connections[c] && time.Now().Before(until); {
		p.mutex.Unlock()
		time.Sleep(10 * time.Millisecond) // until it is healed, or cut
		p.mutex.Lock()
	}
	p.mutex.Unlock()
}

// keep notes a new connection, or ends it.
func (p *Proxy) keep(c *connection) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed || p.fault == Reset || p.fault == Refuse {
		c.client.SetLinger(0)
		c.client.Close()
		p.cutByForce.Add(1)
		return false
	}
	p.connections[c] = true
	return true
}

// cut ends all connections, by resets if it is told to, and waits until nothing
// of them is left.
func (p *Proxy) cut(reset bool) {
	p.mutex.Lock()
	var cut []*connection
	for c := range p.connections {
		cut = append(cut, c)
		if reset {
			c.client.SetLinger(0)
			p.cutByForce.Add(1)
		}
		c.close()
		if c.store == nil { // serve finds it missing
			delete(p.connections, c)
		}
	}
	p.mutex.Unlock()
	for _, c := range cut {
		c.links.Wait()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, c := range cut {
		delete(p.connections, c)
	}
}

// linked says whether a connection has links. It is for those who have locked.
func (p *Proxy) linked() bool {
	for c := range p.connections {
		if c.store != nil {
			return true
		}
	}
	return false
}

func (c *connection) close() {
	c.client.Close()
	if c.store != nil {
		c.store.Close()
	}
}

// A source is where a link reads. It counts what comes in while its direction
// is broken.
type source struct {
	conn   *net.TCPConn
	broken *atomic.Bool
	count  *atomic.Int64
}

func (s source) Read(b []byte) (int, error) {
	n, err := s.conn.Read(b)
	if s.broken.Load() {
		s.count.Add(int64(n))
	}
	return n, err
}

// A sink is where a link writes. Its Write never fails: a link whose writing
// fails leaves a goroutine behind that waits for it.
type sink struct {
	connection *connection
	conn       *net.TCPConn
}

func (s sink) Write(b []byte) (int, error) {
	if _, err := s.conn.Write(b); err != nil {
		s.connection.close()
	}
	return len(b), nil
}

// Close is the last that a link does.
func (s sink) Close() error {
	defer s.connection.links.Done()
	return s.conn.Close()
}
