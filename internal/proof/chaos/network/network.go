// Package network stands between a candidate and its store, as a proxy, and
// breaks the network there: see [Fault]. The bytes go through toxiproxy.
package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A Proxy listens on 127.0.0.1 and passes on to one store what one candidate
// says, and back. Its methods may be called at the same time.
type Proxy struct {
	upstream string
	address  string
	server   *toxiproxy.ApiServer // of which only the counters are used, that we switch off
	toxics   *toxiproxy.ToxicCollection
	serving  sync.WaitGroup // goroutines that accept and connect

	orders   sync.Mutex // one Break, Heal, Delay or Close at a time
	up, down time.Duration
	told     bool    // up and down were set by Delay
	broken   []toxic // what is in force
	lossy    bool    // one of these swallows what passes
	taps     []int   // to forget

	mutex       sync.Mutex // what is new during an order has to see all of it or nothing
	fault       Fault      // "" is none
	listener    net.Listener
	connections map[*connection]bool
	opened      int // connections since New
	closed      bool

	holdsRequests, holdsReplies   atomic.Bool
	requests, replies, cutByForce atomic.Int64
}

// New listens on a free port of 127.0.0.1 and passes on to upstream, a host and
// port. Nothing is connected to before a client connects.
func New(upstream string) (*Proxy, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{
		upstream:    upstream,
		server:      server,
		toxics:      toxiproxy.NewProxy(server, upstream, "", upstream).Toxics,
		connections: map[*connection]bool{},
	}
	// Not a port that the system gives to outgoing connections, nor one of package
	// stores, which are 8000 to 13999 and 20000 to 25999: Heal has to get it again
	// after Refuse, and a store after a restart.
	var err error
	for range 100 {
		p.address = "127.0.0.1:" + strconv.Itoa(14000+rand.IntN(6000))
		if _, taken := addresses.LoadOrStore(p.address, p); taken {
			continue // by a proxy that may refuse now
		}
		if err = p.listen(); err == nil {
			return p, nil
		}
		addresses.Delete(p.address)
	}
	return nil, fmt.Errorf("a proxy of %s finds no free port on 127.0.0.1: %w", upstream, err)
}

// addresses are those of the proxies of this process that were not closed.
var addresses sync.Map

// Address is where the proxy listens, host and port.
func (p *Proxy) Address() string { return p.address }

// Close ends the proxy and its connections. It returns when nothing of it is
// left. A delay of requests may hold it up for as long.
func (p *Proxy) Close() error {
	p.orders.Lock()
	defer p.orders.Unlock()
	err := p.mend()
	p.mutex.Lock()
	p.closed = true
	p.mutex.Unlock()
	err = errors.Join(err, p.refuse())
	p.cut(false)
	p.serving.Wait()
	addresses.Delete(p.address)
	return err
}

// listen accepts connections until the listener is closed.
func (p *Proxy) listen() error {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	p.listener = l
	p.mutex.Unlock()
	p.serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(client.(*net.TCPConn)) })
		}
	})
	return nil
}

// refuse stops listening.
func (p *Proxy) refuse() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.listener == nil {
		return nil
	}
	err := p.listener.Close()
	p.listener = nil
	return err
}
