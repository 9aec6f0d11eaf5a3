package asking

import (
	"net"
	"sync"
	"sync/atomic"
)

// A relay is a candidate's way to the store. While it hangs, nothing passes in
// either direction, and no connection is closed.
type relay struct {
	listener net.Listener
	store    string
	running  sync.WaitGroup

	hangs     atomic.Bool
	swallowed atomic.Int64 // bytes that the candidate has sent since then

	mutex  sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func newRelay(store string) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, store: store, open: map[net.Conn]bool{}}
	r.running.Go(r.serve)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// hang lets nothing pass any more. New connections are accepted.
func (r *relay) hang() { r.hangs.Store(true) }

// heal closes the connections, which have lost bytes, and lets new ones pass.
func (r *relay) heal() {
	r.hangs.Store(false)
	r.closeAll(false)
}

func (r *relay) close() {
	r.listener.Close()
	r.closeAll(true)
	r.running.Wait()
}

func (r *relay) closeAll(forGood bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.closed = r.closed || forGood
	for c := range r.open {
		c.Close()
	}
	clear(r.open)
}

// keep notes a connection that is to be closed with the others.
func (r *relay) keep(c net.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		c.Close()
		return
	}
	r.open[c] = true
}

// drop closes a connection, but not while the relay hangs: nobody is told then.
func (r *relay) drop(c net.Conn) {
	if r.hangs.Load() {
		return
	}
	c.Close()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.open, c)
}

func (r *relay) serve() {
	for {
		candidate, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.keep(candidate)
		r.running.Go(func() {
			if r.hangs.Load() {
				r.pass(candidate, nil, &r.swallowed)
				return
			}
			store, err := net.Dial("tcp", r.store)
			if err != nil {
				r.drop(candidate)
				return
			}
			r.keep(store)
			r.running.Go(func() { r.pass(store, candidate, new(atomic.Int64)) })
			r.pass(candidate, store, &r.swallowed)
		})
	}
}

// pass hands on what comes from one side until that ends. It counts what it
// does not hand on. A connection that was made while the relay hung has no
// other side.
func (r *relay) pass(from, to net.Conn, swallowed *atomic.Int64) {
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		switch {
		case r.hangs.Load():
			swallowed.Add(int64(n))
		case to != nil && n > 0:
			to.Write(b[:n]) // if it is closed, so will be the other direction
		}
		if err != nil {
			if to != nil {
				r.drop(to)
			}
			r.drop(from)
			return
		}
	}
}
