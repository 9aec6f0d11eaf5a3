package electorhttp

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A parcel is a request that can be sent more than once, if its body allows that.
type parcel struct {
	request *http.Request
	held    []byte // the whole body, if it is short
	lent    *loan  // of a body that is not held, to the last try
	packed  bool   // hold was called
}

// maxHeld is the longest body that is kept to be sent again.
const maxHeld = 64 << 10

// hold reads the body, if it is short, and reports whether the client has sent it before a
// time. It breaks the connection then, if w lets it.
func (p *parcel) hold(w http.ResponseWriter, until time.Time) bool {
	r := p.request
	if p.packed || r.Body == nil || r.ContentLength == 0 {
		return true
	}
	p.packed = true
	body := io.Reader(r.Body)
	if r.ContentLength > 0 && r.ContentLength <= maxHeld {
		fired := make(chan struct{})
		late := time.AfterFunc(time.Until(until), func() {
			defer close(fired)
			http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // of a server, that ends the read below
		})
		held, err := io.ReadAll(body)
		if !late.Stop() {
			<-fired // w must not be used once the handler has returned
			return false
		}
		if err == nil {
			p.held = held
			return true
		}
		p.lent = &loan{Reader: io.MultiReader(bytes.NewReader(held), body)} // which fails again
		p.lent.state.Store(lentRead)
		return true
	}
	p.lent = &loan{Reader: body}
	return true
}

// next returns the request, to be sent or served.
func (p *parcel) next() *http.Request {
	if p.held == nil && p.lent == nil {
		return p.request
	}
	r := p.request.WithContext(p.request.Context())
	if p.lent != nil {
		r.Body = io.NopCloser(p.lent) // the server closes it
		return r
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.held)), nil }
	r.Body, _ = r.GetBody()
	return r
}

// back ends a try, and reports whether next returns the whole request again. What the try
// has left running does not read the body any more: [http.RoundTripper] allows that.
func (p *parcel) back() bool {
	if p.lent == nil {
		return true
	}
	whole := p.lent.state.Swap(lentEnded) == lentUnread
	if whole {
		p.lent = &loan{Reader: p.lent.Reader}
	}
	return whole
}

// idempotent reports whether the request may be sent again after it may have had an
// effect: those that net/http repeats.
func (p *parcel) idempotent() bool {
	switch p.request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	h := p.request.Header
	return h["Idempotency-Key"] != nil || h["X-Idempotency-Key"] != nil
}

// A loan is a body for one try.
type loan struct {
	io.Reader
	state atomic.Int32
}

// The states of a loan.
const (
	lentUnread = iota
	lentRead
	lentEnded
)

func (l *loan) Read(b []byte) (int, error) {
	if !l.state.CompareAndSwap(lentUnread, lentRead) && l.state.Load() == lentEnded {
		return 0, http.ErrBodyReadAfterClose
	}
	return l.Reader.Read(b)
}
