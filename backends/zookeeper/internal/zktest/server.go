// Package zktest provides a ZooKeeper server that does not answer, for tests.
package zktest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A Server gives sessions, or not even that, and answers no request.
type Server struct {
	Address  string
	Requests atomic.Int32  // that have come, without greetings
	Left     chan struct{} // gets a value for each connection that the client has closed

	listener net.Listener
	all      sync.WaitGroup
	mutex    sync.Mutex
	open     []net.Conn
}

// NewServer starts a server, which gives sessions if it greets. It ends with the
// test.
func NewServer(t testing.TB, greets bool) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: l.Addr().String(), Left: make(chan struct{}, 1000), listener: l}
	s.all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mutex.Lock()
			s.open = append(s.open, conn)
			s.mutex.Unlock()
			s.all.Go(func() { s.serve(conn, greets) })
		}
	})
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the server and its connections.
func (s *Server) Stop() {
	s.listener.Close()
	s.mutex.Lock()
	for _, conn := range s.open {
		conn.Close()
	}
	s.mutex.Unlock()
	s.all.Wait()
}

func (s *Server) serve(conn net.Conn, greets bool) {
	defer conn.Close()
	for first := true; ; first = false {
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); err != nil {
			s.Left <- struct{}{}
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		switch {
		case !first:
			s.Requests.Add(1)
		case greets: // version, timeout as requested, session, password
			answer := binary.BigEndian.AppendUint32(nil, 36)
			answer = append(answer, 0, 0, 0, 0)
			answer = append(answer, request[12:16]...)
			answer = binary.BigEndian.AppendUint64(answer, 1)
			answer = binary.BigEndian.AppendUint32(answer, 16)
			conn.Write(append(answer, make([]byte, 16)...))
		}
	}
}
