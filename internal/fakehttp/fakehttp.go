// Package fakehttp has what the fakes of stores over HTTP have in common.
package fakehttp

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A Server answers as a fake does, or as a test wants, and counts the requests.
type Server struct {
	*httptest.Server
	Closed chan struct{} // gets one of each closed connection, if there is room

	mutex  sync.Mutex
	counts map[string]int
	answer map[string]http.HandlerFunc
}

// New returns a server that ends with the test. usual returns the kind of a request and
// how the fake answers it.
func New(t testing.TB, usual func(*http.Request) (kind string, serve http.HandlerFunc)) *Server {
	s := &Server{Closed: make(chan struct{}, 100), counts: map[string]int{}, answer: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, serve := usual(r)
		s.mutex.Lock()
		s.counts[kind]++
		if other := s.answer[kind]; other != nil {
			serve = other
		}
		s.mutex.Unlock()
		serve(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			select {
			case s.Closed <- struct{}{}:
			default:
			}
		}
	}
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Instead sets the answers to all requests of one kind; nil means the usual ones.
func (s *Server) Instead(kind string, answer http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answer[kind] = answer
}

// Requests returns how many there were of each kind since the last call.
func (s *Server) Requests() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := s.counts
	s.counts = map[string]int{}
	return n
}

// Reset breaks the connection off without an answer.
func Reset(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}
