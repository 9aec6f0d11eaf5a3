package store

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// A Client makes requests through one backend. Many goroutines may use it.
type Client struct {
	backend backends.Backend
	clock   clock.Clock
	active  *sync.WaitGroup // counts the requests under way
	key     any             // of its handle: the backend, or the client of a backend that cannot be a key

	// Guarded by the handle's mutex.
	hung [ranks]int // requests whose time is over, and that have not returned
	most [kinds]int // of its requests that go together with others, 0 for any number: see line.failed
}

// New returns a Client. A request that its caller has given up counts in active until it
// returns, if nobody else waits for it.
func New(b backends.Backend, c clock.Clock, active *sync.WaitGroup) *Client {
	client := &Client{backend: b, clock: c, active: active, key: b}
	if !reflect.ValueOf(b).Comparable() {
		client.key = client
	}
	return client
}

// A Request is a request that waits, is under way, or has ended.
type Request struct {
	Ask
	client *Client
	ctx    context.Context // whose values go with a request of one
	name   string

	build func() (backends.Change, bool) // of a swap, each time when it is about to be sent
	sent  func()                         // of a read, the same
	bytes int
	draft

	// Guarded by the handle's mutex.
	handle *handle
	queued
	batch   *batch // under way
	left    bool   // it was given up, and the batch went on for others
	over    bool
	outcome backends.Outcome
	done    chan struct{} // closed when it is over
}

// A draft is the swap of a request, once it is built.
type draft struct {
	change backends.Change
	built  bool
}

// A queued request waits in a line, the first time or again.
type queued struct {
	line *line
	came time.Duration // monotonic, first
	last bool          // it can hardly be in time
	most int           // requests that go together, 0 for any number
	why  error         // of the last batch, if it is sent again
}

// Swap begins a swap of a record with the name. build returns it, when it is about to be
// sent, or false if it is too late for that. Another goroutine calls it, before Wait returns,
// and again with the same answer if the swap has to be sent again. bytes is about how long
// its texts are.
func (c *Client) Swap(ctx context.Context, name string, a Ask, bytes int, build func() (backends.Change, bool)) *Request {
	r := &Request{Ask: a, client: c, ctx: ctx, name: name, build: build, bytes: bytes, done: make(chan struct{})}
	c.begin(swaps, r)
	return r
}

// Load begins to read the record with the name. sent is called when the request is about to
// be sent, each time, by another goroutine.
func (c *Client) Load(ctx context.Context, name string, a Ask, sent func()) *Request {
	r := &Request{Ask: a, client: c, ctx: ctx, name: name, sent: sent, done: make(chan struct{})}
	c.begin(loads, r)
	return r
}

// begin lets requests wait, and sends what may be sent.
func (c *Client) begin(k kind, all ...*Request) {
	h := c.enter()
	defer h.leave()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, r := range all {
		r.handle, r.line = c.enter(), &h.lines[k]
		if c.hung[r.Rank] >= mostHung {
			r.end(backends.Outcome{Err: errHang})
			continue
		}
		r.most = c.most[k]
		if r.Alone {
			r.most = 1
		}
		r.line.add(r, h.clock.Now().Mono)
	}
	h.dispatch()
}

// Done is closed when the request is over.
func (r *Request) Done() <-chan struct{} { return r.done }

// Wait blocks until the request is over, or ctx ends: then it is given up. It returns the
// outcome, and whether the request was certainly not sent.
func (r *Request) Wait(ctx context.Context) (o backends.Outcome, unsent bool) {
	select {
	case <-r.done:
		return r.outcome, !r.built && notTried(r.outcome.Err)
	case <-ctx.Done():
		unsent = r.GiveUp(context.Cause(ctx))
		<-r.done
		if unsent {
			return backends.Outcome{Err: ctx.Err()}, true
		}
		return r.outcome, false
	}
}

// Withdraw gives the request up if it was not sent, and reports whether it did.
func (r *Request) Withdraw() bool {
	h := r.handle
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if r.over || r.batch != nil || r.built {
		return false
	}
	r.line.remove(r)
	r.end(backends.Outcome{Err: errLate})
	return true
}

// GiveUp ends the request, for the reason why. It returns true if the request was not sent,
// and never will be. If it was, and nobody else waits for it, its context ends.
func (r *Request) GiveUp(why error) (unsent bool) {
	h := r.handle
	h.mutex.Lock()
	b := r.batch
	switch {
	case r.over:
	case b != nil:
		h.abandon(b, r, unanswered(b.age(h.clock.Now().Mono), why))
	default:
		r.line.remove(r)
		r.end(backends.Outcome{Err: cmp.Or(r.why, errLate)})
		unsent = !r.built
	}
	h.mutex.Unlock()
	if b != nil {
		<-b.sent // what build uses is the caller's again
	}
	return unsent
}

// end ends the request. The caller holds the mutex of the handle.
func (r *Request) end(o backends.Outcome) {
	r.over, r.outcome = true, o
	r.handle.leave()
	close(r.done)
}
