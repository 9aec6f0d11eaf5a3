package electorhttp

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

// A parcel is a request that can be sent more than once, if its body allows that.
type parcel struct {
	request *http.Request
	held    []byte      // the whole body, if it is short
	read    atomic.Bool // some of a body that is not held
	packed  bool        // hold was called
}

// maxHeld is the longest body that is kept to be sent again.
const maxHeld = 64 << 10

// hold reads the body, if it is short. It blocks until the client has sent that.
func (p *parcel) hold() {
	r := p.request
	if p.packed || r.Body == nil || r.ContentLength == 0 {
		return
	}
	p.packed = true
	body := io.Reader(r.Body)
	if r.ContentLength > 0 && r.ContentLength <= maxHeld {
		held, err := io.ReadAll(body)
		if err == nil {
			p.held = held
			return
		}
		p.read.Store(true)
		body = io.MultiReader(bytes.NewReader(held), body) // which fails again
	}
	p.request = r.WithContext(r.Context())
	p.request.Body = io.NopCloser(&watched{body, &p.read}) // the server closes it
}

// next returns the request, to be sent or served.
func (p *parcel) next() *http.Request {
	if p.held == nil {
		return p.request
	}
	r := p.request.WithContext(p.request.Context())
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.held)), nil }
	r.Body, _ = r.GetBody()
	return r
}

// whole reports whether next returns the whole request.
func (p *parcel) whole() bool { return !p.read.Load() }

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

// watched notes that something was read.
type watched struct {
	io.Reader
	read *atomic.Bool
}

func (w *watched) Read(b []byte) (int, error) {
	w.read.Store(true)
	return w.Reader.Read(b)
}
