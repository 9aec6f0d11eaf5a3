package kubernetes

import (
	"context"
	"net"
	"sync"
	"time"
)

// connections are those that a handle has open. A transport that is told to close
// its idle connections keeps those of calls and watches that are about to end.
type connections struct {
	life   context.Context // ends the dials under way
	dialer net.Dialer
	mutex  sync.Mutex
	open   map[*connection]bool
	closed bool
}

type connection struct {
	net.Conn
	of *connections
}

func newConnections(life context.Context) *connections {
	return &connections{
		life: life,
		open: map[*connection]bool{},
		// A connection that has gone dark is given up after 16 s.
		dialer: net.Dialer{Timeout: 5 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 3 * time.Second, Count: 2}},
	}
}

// dial connects. net/http does not end a dial with its request either.
func (c *connections) dial(_ context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(c.life, network, address)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	one := &connection{conn, c}
	c.open[one] = true
	return one, nil
}

// close closes all connections, and those that are dialed from now on.
func (c *connections) close() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	for one := range c.open {
		one.Conn.Close()
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mutex.Lock()
	delete(c.of.open, c)
	c.of.mutex.Unlock()
	return c.Conn.Close()
}
