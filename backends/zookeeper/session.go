package zookeeper

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

// A session is a client of the library and what we have to know about its
// connection, which it replaces by itself.
type session struct {
	conn *zk.Conn
	life context.Context // ends with Close
	end  context.CancelFunc
	once sync.Once

	// Of our own clients only.
	wires *wires
	ended <-chan zk.Event // closed when nothing of the library runs any more
	ready chan struct{}   // closed with the first connection

	mutex sync.Mutex
	lost  chan struct{} // closed when the present connection is lost; nil while there is none

	hanging atomic.Int32 // calls that were given up and have not returned
}

// maxHanging bounds them. They end with the connection at the latest.
const maxHanging = 256

// begin starts a client of the library.
func begin(hosts []string, timeout time.Duration, w *wires) (*session, error) {
	life, end := context.WithCancel(context.Background())
	s := &session{life: life, end: end, wires: w, ready: make(chan struct{})}
	w.life = life
	var err error
	s.conn, s.ended, err = zk.Connect(hosts, timeout,
		zk.WithDialer(w.dial), zk.WithHostProvider(w),
		zk.WithEventCallback(s.event), // the channel drops what nobody takes
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		end()
		return nil, err
	}
	return s, nil
}

// silent keeps the library from writing to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}

// event is told of every change of the connection, in order.
func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case e.State == zk.StateHasSession && s.lost == nil:
		s.lost = make(chan struct{})
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	case e.State == zk.StateDisconnected && s.lost != nil:
		close(s.lost)
		s.lost = nil
	}
}

// connected returns what is closed when the present connection is lost, nil if
// that cannot be known. Without a session it is an error: the library would
// keep a request until it has one, and send a write long after it was given up.
func (s *session) connected() (lost <-chan struct{}, err error) {
	if s.life.Err() != nil {
		return nil, errClosed
	}
	if s.wires == nil {
		if state := s.conn.State(); state != zk.StateHasSession {
			return nil, fmt.Errorf("%w: there is no session at the moment (%v); %s", backends.ErrUnavailable, state, look)
		}
		return nil, nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lost == nil {
		return nil, fmt.Errorf("%w: there is no session at the moment (%v); %s", backends.ErrUnavailable, s.wires.reason(), look)
	}
	return s.lost, nil
}

// call calls the library, which knows no contexts, and returns when ctx ends
// all the same: f then goes on until the library gives up too.
func call[T any](ctx context.Context, s *session, f func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if _, err := s.connected(); err != nil {
		return none, err
	}
	if s.hanging.Load() >= maxHanging {
		return none, fmt.Errorf("%w: it has not answered %d earlier requests; %s", backends.ErrUnavailable, maxHanging, look)
	}
	type result struct {
		value T
		err   error
	}
	done, givenUp := make(chan result), make(chan struct{})
	go func() {
		value, err := f()
		select {
		case done <- result{value, err}:
		case <-givenUp:
			s.hanging.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	case <-s.life.Done():
	}
	s.hanging.Add(1)
	close(givenUp)
	if err := ctx.Err(); err != nil {
		return none, err
	}
	return none, errClosed
}

func (s *session) close() {
	s.once.Do(func() {
		s.end()
		if s.wires == nil {
			return
		}
		s.conn.Close() // tells the server, if there is one, and waits a little for its answer
		s.wires.cut()
		s.drain(lastWords)
	})
}

// lastWords is how long the library may take to end once its connection is cut.
const lastWords = 5 * time.Second

// drain waits until nothing of the library runs any more. A fault of the library
// must not hold up whoever closes.
func (s *session) drain(most time.Duration) {
	overdue := time.NewTimer(most)
	defer overdue.Stop()
	for {
		select {
		case _, more := <-s.ended:
			if !more {
				return
			}
		case <-overdue.C:
			return
		}
	}
}
