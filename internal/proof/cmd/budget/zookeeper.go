package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/proof/stores"
)

// startZooKeeper counts requests as they leave, without the client's pings.
func startZooKeeper(ctx context.Context) (*counted, error) {
	s, err := stores.Start(ctx, stores.ZooKeeper)
	if err != nil {
		return nil, err
	}
	c := &counted{
		how: s.String(), stop: s.Stop,
		budget: budget{acquire: 4, first: 4, idle: 2},
		note:   "a read is two requests, for a sync comes first; and who leads has a watch set on its own node",
	}
	c.open = func(ctx context.Context) (*client, error) {
		u, err := url.Parse(s.URL)
		if err != nil {
			return nil, err
		}
		u.Path += "/budget"
		// This makes the parent of the elections.
		b, err := backends.Open(ctx, u.String())
		if err != nil {
			return nil, err
		}
		if err := b.Close(); err != nil {
			return nil, err
		}
		sent := new(atomic.Int64)
		conn, events, err := zk.Connect(strings.Split(u.Host, ","), 30*time.Second, zk.WithLogger(silent{}),
			zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
				conn, err := net.DialTimeout(network, address, timeout)
				return &countedConn{Conn: conn, sent: sent}, err
			}))
		if err != nil {
			return nil, err
		}
		for conn.State() != zk.StateHasSession {
			select {
			case <-events:
			case <-ctx.Done():
				conn.Close()
				return nil, fmt.Errorf("no session: %w", context.Cause(ctx))
			}
		}
		return &client{zookeeper.New(conn, u.Path), sent, conn.Close}, nil
	}
	return c, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// A countedConn counts the requests that a ZooKeeper client writes. Each is a
// frame: four bytes of length, four of its number, and the rest. The first
// frame of a connection opens the session.
type countedConn struct {
	net.Conn
	sent *atomic.Int64

	// Owned by the one goroutine of the client that writes.
	head   []byte // of the frame under way, at most 8 bytes
	left   int    // bytes of the frame that come after head
	frames int
}

// pingNumber is what ZooKeeper's protocol has for pings instead of a number.
const pingNumber = -2

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.count(b[:n])
	return n, err
}

func (c *countedConn) count(b []byte) {
	for len(b) > 0 {
		if c.left > 0 {
			skip := min(c.left, len(b))
			c.left -= skip
			b = b[skip:]
			continue
		}
		take := min(8-len(c.head), len(b))
		c.head = append(c.head, b[:take]...)
		b = b[take:]
		if len(c.head) < 8 {
			continue
		}
		length := int32(binary.BigEndian.Uint32(c.head))
		number := int32(binary.BigEndian.Uint32(c.head[4:]))
		c.left = int(length) - 4
		if c.frames++; c.frames > 1 && number != pingNumber {
			c.sent.Add(1)
		}
		c.head = c.head[:0]
	}
}
