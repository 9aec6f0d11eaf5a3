// Package fencehttp carries fencing tokens over HTTP: Transport sends the token of
// a lease with each request, and Handler lets a service refuse the requests of an
// old leader.
//
// A Handler answers, as plain text:
//
//   - 412 Precondition Failed to a stale token, with the highest token seen in
//     the header Elector-Fencing-Token (RFC 9110, section 15.5.13). The client
//     must stop; see Refused.
//   - 428 Precondition Required to a request without a token that may change
//     something (RFC 6585).
//   - 400 Bad Request to a malformed token, the token of another election, or one
//     that Fence.MaxAhead refuses.
//   - 503 Service Unavailable with Retry-After while older requests are still
//     served, or when the token could not be kept.
//
// Authenticate before the Handler: a client that forges a high token locks all
// others out.
package fencehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// ElectionHeader is the name of the header that carries the election's name.
const ElectionHeader = "Elector-Election"

// A Handler serves the requests that its Fence admits. The zero value of each
// field but Next means the default. A Handler must not be copied after its first
// request.
type Handler struct {
	// Next serves the requests. When a request with a higher token waits, the
	// context of an older one ends with cause ErrStale, and so do reads of its
	// body: a leader that was stopped in the middle of a request keeps its
	// successor out no longer than Next takes to return. A client that does not
	// read its answer can keep Next from returning: set [http.Server.WriteTimeout].
	// Next must not return before its work is done, as http.TimeoutHandler does:
	// put that outside. It must not enable full duplex for HTTP/1: net/http could
	// then take the rest of an older request's body for another request. A request
	// without a token, which only a safe method may make, is not fenced.
	Next http.Handler

	// Fence admits the tokens. Default one of its own, in memory. Share one
	// Fence between all handlers of a resource: one for an election, not one
	// for each path.
	Fence *elector.Fence

	// Election is the name of the election whose tokens count. Requests that
	// name another one, or none, are refused. Partition N of the group NAME has
	// the election NAME.p.N. Default any.
	Election string

	// Resource names the resource that a request changes. The Fence remembers
	// each name for good. The tokens of two partitions of a group cannot be
	// compared, so each partition is a resource of its own: name it by what the
	// request changes, or make a Handler for each. Default one resource for all
	// requests.
	Resource func(*http.Request) string

	// Wait is how long a request waits for older ones and for the Keeper.
	// Default 10 s.
	Wait time.Duration

	own elector.Fence
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tokens := r.Header.Values(elector.TokenHeader)
	switch {
	case len(tokens) == 0 && safe(r.Method):
		h.Next.ServeHTTP(w, r)
		return
	case len(tokens) == 0:
		http.Error(w, "this request needs a fencing token in the header "+elector.TokenHeader, http.StatusPreconditionRequired)
		return
	case len(tokens) > 1:
		http.Error(w, fmt.Sprintf("the header %s came %d times; send one token", elector.TokenHeader, len(tokens)), http.StatusBadRequest)
		return
	}
	token, err := elector.ParseToken(tokens[0])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if got := r.Header.Get(ElectionHeader); h.Election != "" && got != h.Election {
		http.Error(w, fmt.Sprintf("the fencing token is of election %.140q; this resource is protected by %q", got, h.Election), http.StatusBadRequest)
		return
	}
	inside, leave, err := h.enter(r, token)
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer leave()
	r = r.WithContext(inside)
	if r.Body != nil && r.Body != http.NoBody {
		b := &body{ReadCloser: r.Body, inside: inside, connection: http.NewResponseController(w)}
		r.Body = b
		defer b.watch(w, r)()
	}
	h.Next.ServeHTTP(w, r)
}

// enter waits for Wait, but does not bound how long the request is served.
func (h *Handler) enter(r *http.Request, token elector.Token) (inside context.Context, leave func(), err error) {
	fence, resource, wait := h.Fence, "", h.Wait
	if fence == nil {
		fence = &h.own
	}
	if h.Resource != nil {
		resource = h.Resource(r)
	}
	if wait == 0 {
		wait = 10 * time.Second
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	late := fmt.Errorf("requests with an older fencing token are still served, or the token could not be kept, after %v; try again", wait)
	timer := time.AfterFunc(wait, func() { cancel(late) })
	inside, left, err := fence.Enter(ctx, resource, token)
	if !timer.Stop() && err == nil {
		left()
		err = late
	}
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return inside, func() { left(); cancel(nil) }, nil
}

// A body is that of a request. Its reads fail once the request is an older one.
type body struct {
	io.ReadCloser
	inside     context.Context
	connection *http.ResponseController

	mutex   sync.Mutex
	reading int  // calls under way that may wait for the client
	whole   bool // nothing is left to wait for
	over    bool // the request is an older one
	cut     bool // the connection's reads were made to fail
}

// watch ends the reads when the request becomes an older one. stop ends that, and
// waits for it: the connection may serve another request afterwards.
func (b *body) watch(w http.ResponseWriter, r *http.Request) (stop func()) {
	done := make(chan struct{})
	unset := context.AfterFunc(b.inside, func() {
		defer close(done)
		if errors.Is(context.Cause(b.inside), elector.ErrStale) {
			b.end()
		}
	})
	return func() {
		if !unset() {
			<-done
		}
		b.mutex.Lock()
		defer b.mutex.Unlock()
		if b.cut && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
	}
}

// end makes reads fail. Only a deadline ends one that waits for the client, and the
// server then ends the context of all later requests on the connection. So it is set
// for such a read alone: between reads, and after the last, the server itself reads
// ahead.
func (b *body) end() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.over = true
	if b.reading > 0 {
		b.cut = true
		_ = b.connection.SetReadDeadline(time.Unix(1, 0)) // a writer that cannot has no connection
	}
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (n int, err error) {
	b.mutex.Lock()
	over, whole := b.over, b.whole
	if !over && !whole {
		b.reading++
	}
	b.mutex.Unlock()
	switch {
	case over:
		return 0, context.Cause(b.inside)
	case whole:
		return b.ReadCloser.Read(p)
	}
	defer func() { b.waited(errors.Is(err, io.EOF)) }()
	return b.ReadCloser.Read(p)
}

// Close implements [io.Closer]. It may read what is left.
func (b *body) Close() error {
	b.mutex.Lock()
	b.reading++
	b.mutex.Unlock()
	defer b.waited(true)
	return b.ReadCloser.Close()
}

func (b *body) waited(whole bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.reading--
	b.whole = b.whole || whole
}

func refuse(w http.ResponseWriter, r *http.Request, err error) {
	var stale *elector.StaleError
	switch {
	case errors.As(err, &stale):
		w.Header().Set(elector.TokenHeader, stale.Highest.String())
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case errors.Is(err, elector.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		if r.Context().Err() != nil && r.ProtoMajor == 1 { // as would be that of the next request on the connection
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// safe reports whether a method changes nothing (RFC 9110, section 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// A Transport sends a lease's token and election with each request. It makes no
// request when the lease is over, and returns the lease's error then. Make a
// Transport, and a client, for each lease: they are small, and share the connections
// of Base.
//
// A redirect to another host is followed without the token: it is for the service
// that the caller named.
type Transport struct {
	Lease backends.Lease    // an *elector.Lease or a *partition.Lease
	Base  http.RoundTripper // default http.DefaultTransport
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := t.Lease.Acquisition()
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if r.URL.Host == origin(r).URL.Host {
		r = r.Clone(r.Context())
		r.Header.Set(elector.TokenHeader, elector.Token(a.Record.Token).String())
		r.Header.Set(ElectionHeader, a.Election)
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}

// origin returns the request whose redirects led to r.
func origin(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

// Refused reports whether a response is a Handler's refusal of a stale token, and
// the highest token that it has seen. The caller must stop its work.
func Refused(r *http.Response) (highest elector.Token, refused bool) {
	if r.StatusCode != http.StatusPreconditionFailed {
		return 0, false
	}
	highest, err := elector.ParseToken(r.Header.Get(elector.TokenHeader))
	return highest, err == nil
}
