package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// A Proxy is a way to a store on which everything is counted. Its methods may
// be called at the same time.
type Proxy struct {
	kind, target string
	listener     net.Listener
	life         context.Context
	end          context.CancelFunc
	serving      sync.WaitGroup

	mutex  sync.Mutex
	counts Counts
	conns  map[net.Conn]bool // both sides of each connection; nil once the proxy is closed
	err    error             // the first
}

// Start listens on a free port of 127.0.0.1 and passes connections on to target,
// the host:port of a store of the kind. [stores.Store.Through] gives the store's
// URL with the proxy in it. Call Close.
//
// What a client sends is counted before it is passed on, and so is what it gets:
// a client that has an answer finds it and its request counted.
func Start(kind, target string) (*Proxy, error) {
	if _, err := newDecoder(kind); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	p := &Proxy{kind: kind, target: target, listener: l, conns: make(map[net.Conn]bool)}
	p.life, p.end = context.WithCancel(context.Background())
	p.serving.Go(p.accept)
	return p, nil
}

// Address is host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Counts is what was counted until now, all of it at the same moment.
func (p *Proxy) Counts() Counts {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.counts
}

// Err says why a connection could not be decoded. Its requests are not all
// counted then. What it is sent is passed on all the same.
func (p *Proxy) Err() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.err
}

// Close ends the proxy and all connections through it, and returns Err. A
// second time does nothing more.
func (p *Proxy) Close() error {
	p.end()
	p.listener.Close()
	p.mutex.Lock()
	for conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
	p.mutex.Unlock()
	p.serving.Wait()
	return p.Err()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.serving.Go(func() { p.serve(conn) })
	}
}

// keep remembers a connection for Close. It says no when that was called.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.conns == nil {
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *Proxy) drop(conn net.Conn) {
	conn.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.conns, conn)
}

func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	p.count(Counts{Opened: 1, Open: 1})
	defer p.count(Counts{Open: -1})
	server, err := (&net.Dialer{}).DialContext(p.life, "tcp", p.target)
	if err != nil {
		return // as if the store refused the connection
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	var directions sync.WaitGroup
	directions.Go(func() {
		d, _ := newDecoder(p.kind) // Start has tried
		pass(server, client, func(piece []byte) {
			c := Counts{Sent: int64(len(piece))}
			if d != nil {
				requests, pings, err := d.decode(piece)
				c.Requests, c.Pings = int64(requests), int64(pings)
				if err != nil {
					d = nil
					p.fail(err)
				}
			}
			p.count(c)
		})
	})
	directions.Go(func() {
		pass(client, server, func(piece []byte) { p.count(Counts{Received: int64(len(piece))}) })
	})
	directions.Wait()
}

func (p *Proxy) count(c Counts) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.counts = p.counts.Plus(c)
}

func (p *Proxy) fail(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf("wire: a client of the %s store at %s cannot be counted: %w", p.kind, p.target, err)
	}
}

// pass copies one direction of a connection and shows each piece first. The end
// of what is read is passed on as such; the other direction stays open.
// Everything else that ends it ends both.
func pass(to, from net.Conn, show func([]byte)) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			show(buffer[:n])
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if err == io.EOF {
			to.(*net.TCPConn).CloseWrite()
			return
		}
		if err != nil {
			to.Close()
			from.Close()
			return
		}
	}
}
