package zkconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// servers connects to one server after the other. The library's own way looks
// up their names once and never again, refuses all of them if one is unknown,
// and forgets the names, which TLS needs.
type servers struct {
	hosts    []string
	tls      Secure // nil for none
	patience time.Duration
	life     context.Context // ends with Close

	mutex     sync.Mutex
	at        int       // index of the next host
	tried     int       // hosts tried since there was a session that lasted
	since     time.Time // when the present session began; zero if there is none
	current   *wire     // the latest connection
	err       error     // why there is no session
	exhausted chan struct{}
}

// lasting is how long a session must have lasted for the next search of a server
// to begin without a pause.
const lasting = time.Second

var errNothing = errors.New("not connected yet")

func newServers(life context.Context, hosts []string, secure Secure, patience time.Duration) *servers {
	return &servers{hosts: hosts, tls: secure, patience: patience, life: life, err: errNothing, exhausted: make(chan struct{})}
}

// Init, Len, Next and Connected implement the library's HostProvider. When Next
// returns retryStart, the library pauses for a second and drops the requests
// that it has not sent.
func (s *servers) Init(hosts []string) error {
	s.hosts = hosts // in random order
	return nil
}

func (s *servers) Len() int { return len(s.hosts) }

func (s *servers) Next() (host string, retryStart bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	// A server that hangs up right after its greeting is as bad as none.
	if !s.since.IsZero() && time.Since(s.since) >= lasting {
		s.tried = 0
	}
	s.since = time.Time{}
	host = s.hosts[s.at]
	s.at = (s.at + 1) % len(s.hosts)
	retryStart = s.tried > 0 && s.tried%len(s.hosts) == 0
	if retryStart && s.tried == len(s.hosts) {
		select {
		case <-s.exhausted:
		default:
			close(s.exhausted) // each has been tried once
		}
	}
	s.tried++
	return host, retryStart
}

func (s *servers) Connected() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.since, s.err = time.Now(), nil
}

// Secure returns the configuration of TLS for a connection to an address.
type Secure func(address string) (*tls.Config, error)

func (s *servers) connect(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{}
	if s.tls == nil {
		return dialer.DialContext(ctx, network, address)
	}
	config, err := s.tls(address)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
}

// dial is the library's Dialer.
func (s *servers) dial(network, address string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.life, s.patience)
	defer cancel()
	conn, err := s.connect(ctx, network, address)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current != nil {
		s.current.Close() // the library leaves it open when the session has expired
		s.current = nil
	}
	if err != nil {
		s.err = fmt.Errorf("%s: %w", address, err)
		return nil, err
	}
	s.current = &wire{Conn: conn, servers: s, address: address}
	return s.current, nil
}

// fail sets the reason why there is no session.
func (s *servers) fail(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.err = err
}

// reason returns why there is no session.
func (s *servers) reason() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err == nil {
		return errors.New("the connection was lost")
	}
	return s.err
}

// cut closes the present connection.
func (s *servers) cut() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current != nil {
		s.current.Close()
	}
}
