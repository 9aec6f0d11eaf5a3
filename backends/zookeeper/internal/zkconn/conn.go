// Package zkconn connects to ZooKeeper with the client library
// github.com/go-zookeeper/zk and adds what that lacks:
//
//   - It leaves a server that does not answer early enough to find another one
//     before the session expires. See wire.
//   - It looks up host names for each connection, and one unknown name does not
//     rule out the other hosts. See servers.
//   - It reports that there is no session, and why. See [Conn.Connected].
//   - Close waits until nothing of the library runs.
package zkconn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Conn is a client of the library, which replaces its connection by itself.
// Its calls ignore contexts; they end with the connection at the latest.
type Conn struct {
	*zk.Conn

	// The rest is for clients of Dial only.
	servers *servers
	end     context.CancelFunc
	ended   <-chan zk.Event // closed when nothing of the library runs
	ready   chan struct{}   // closed with the first session

	mutex sync.Mutex
	lost  chan struct{} // closed when the present connection is lost; nil while there is none
}

// Wrap returns a Conn on the caller's client, which Close leaves open.
func Wrap(client *zk.Conn) *Conn { return &Conn{Conn: client} }

// Dial starts to connect to one of the hosts, each as host:port, with TLS if
// secure is not nil. It does not wait for the session; see Wait. The timeout is
// that of the session. A server that does not answer is left after a sixth of
// it, and a second at least: that leaves time to try some other servers before
// the session expires.
func Dial(hosts []string, secure Secure, timeout time.Duration) (*Conn, error) {
	return dial(hosts, secure, timeout, max(timeout/6, time.Second))
}

func dial(hosts []string, secure Secure, timeout, patience time.Duration) (*Conn, error) {
	life, end := context.WithCancel(context.Background())
	c := &Conn{servers: newServers(life, hosts, secure, patience), end: end, ready: make(chan struct{})}
	var err error
	c.Conn, c.ended, err = zk.Connect(hosts, timeout,
		zk.WithDialer(c.servers.dial), zk.WithHostProvider(c.servers),
		zk.WithEventCallback(c.event), // the channel drops events that are not received
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		end()
		return nil, err
	}
	return c, nil
}

// silent keeps the library from writing to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}

// event is called with every change of the connection, in order.
func (c *Conn) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case e.State == zk.StateHasSession && c.lost == nil:
		c.lost = make(chan struct{})
		select {
		case <-c.ready:
		default:
			close(c.ready)
		}
	case e.State == zk.StateDisconnected && c.lost != nil:
		close(c.lost)
		c.lost = nil
	}
}

// Wait blocks until there has been a session. When each host has been tried
// once, or ctx has ended, it returns the reason why there is none. Only a Conn
// of Dial has it.
func (c *Conn) Wait(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.servers.exhausted:
	case <-ctx.Done():
	}
	return fmt.Errorf("no server was reached: %w", c.servers.reason())
}

// Connected returns a channel that is closed when the present connection is
// lost, nil for a Conn of Wrap, which cannot know. Without a session it returns
// an error, and callers must not make a request: the library would keep it until
// there is a session, and send a write long after its caller gave it up. The
// error does not wrap the reason, which may pass.
func (c *Conn) Connected() (lost <-chan struct{}, err error) {
	const noSession = "there is no session at the moment (%v)"
	if c.servers == nil {
		if state := c.State(); state != zk.StateHasSession {
			return nil, fmt.Errorf(noSession, state)
		}
		return nil, nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.lost == nil {
		return nil, fmt.Errorf(noSession, c.servers.reason())
	}
	return c.lost, nil
}

// Close ends the session and all calls under way. It blocks until the
// connection is closed: at once, or up to 3 s if no server answers. A Conn of
// Wrap stays as it is.
func (c *Conn) Close() {
	if c.servers == nil {
		return
	}
	c.end()
	c.Conn.Close() // sends the end of the session, if there is a server, and waits a little for the answer
	c.servers.cut()
	c.drain(lastWords)
}

// lastWords is how long the library may take to end once its connection is cut.
const lastWords = 5 * time.Second

// drain waits until nothing of the library runs, but not longer than most: a
// fault of the library must not block Close.
func (c *Conn) drain(most time.Duration) {
	overdue := time.NewTimer(most)
	defer overdue.Stop()
	for {
		select {
		case _, more := <-c.ended:
			if !more {
				return
			}
		case <-overdue.C:
			return
		}
	}
}
