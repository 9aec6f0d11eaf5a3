package electorhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
)

// A transport may read the body after it has returned. If the request is sent again, the
// whole body is.
func TestBodyReadLate(t *testing.T) {
	synctest.Test(t, bodyReadLate)
}

func bodyReadLate(t *testing.T) {
	s := memory.NewStore()
	lead(t, join(t, s.Handle(), "a", "a:1"))
	o := electorhttp.Observe(t.Context(), join(t, s.Handle(), "b", ""))
	o.Logger = quiet
	content, tries := strings.Repeat("x", 1000), 0
	o.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		if tries++; tries == 1 {
			go func() { time.Sleep(time.Millisecond); io.CopyN(io.Discard, r.Body, 10) }()
			w.Header().Set("Elector-Refused", r.Header.Get("Elector-Try"))
			w.WriteHeader(http.StatusServiceUnavailable)
			return w.Result(), nil
		}
		time.Sleep(time.Second)
		io.Copy(w, r.Body)
		return w.Result(), nil
	})
	r := httptest.NewRequest("POST", "/", strings.NewReader(content))
	r.ContentLength = -1
	w := httptest.NewRecorder()
	o.Forward(http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != 200 || w.Body.String() != content || tries != 2 {
		t.Errorf("%d with %d bytes after %d tries", w.Code, w.Body.Len(), tries)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
