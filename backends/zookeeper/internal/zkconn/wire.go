package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrProtocol is a server that does not speak ZooKeeper's protocol.
var ErrProtocol = errors.New("what answers there is not ZooKeeper")

// A wire is a connection that fails when a request was sent and no answer comes
// within the patience. The library waits for two thirds of the session timeout,
// and ten times as long for the first answer: that would leave no time to find a
// better server.
type wire struct {
	net.Conn
	servers *servers
	address string

	mutex   sync.Mutex
	waiting int       // requests without an answer
	due     time.Time // when the next answer must have come; zero if none is missing
	met     bool      // something has been read, or reading has failed

	head []byte // the first 8 bytes of the message that is coming, as far as they have come
	seen int    // how much of it has come
}

// Write is called with one request at a time, the greeting and pings included.
func (w *wire) Write(p []byte) (int, error) {
	w.mutex.Lock()
	if w.waiting++; w.due.IsZero() {
		w.due = time.Now().Add(w.servers.patience)
		w.Conn.SetReadDeadline(w.due)
	}
	w.mutex.Unlock()
	if _, err := w.Conn.Write(p); err != nil {
		// The library learns of it from Read, which then fails too. An error
		// of Write can block it for ever, because it answers the request
		// twice.
		w.Conn.Close()
	}
	return len(p), nil
}

// SetReadDeadline is called by the library before it waits for a message, and
// with zero when a message has begun to come or has come: the deadline then
// stays until the next call.
func (w *wire) SetReadDeadline(t time.Time) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if t.IsZero() {
		return nil
	}
	if !w.due.IsZero() && t.After(w.due) {
		t = w.due
	}
	return w.Conn.SetReadDeadline(t)
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.met {
		switch {
		case n > 0 && p[0] != 0: // the first byte of a small length is 0
			n, err = 0, fmt.Errorf("%s: %w", w.address, ErrProtocol)
			w.servers.fail(err)
		case err != nil:
			w.servers.fail(fmt.Errorf("%s accepted the connection and then hung up or sent nothing; it may have no quorum, too many connections from here (maxClientCnxns), or speak TLS (zookeepers://): %w", w.address, err))
		}
		w.met = true
	}
	w.scan(p[:n])
	return n, err
}

// scan finds the answers in what comes. A message begins with its length, and
// the library never reads beyond one; -1 follows if it is an event.
func (w *wire) scan(p []byte) {
	w.seen += len(p)
	w.head = append(w.head, p[:min(len(p), 8-len(w.head))]...)
	if len(w.head) < 8 || w.seen < 4+int(binary.BigEndian.Uint32(w.head)) {
		return
	}
	if event := int32(binary.BigEndian.Uint32(w.head[4:])) == -1; !event {
		w.waiting--
		w.due = time.Time{}
		if w.waiting > 0 {
			w.due = time.Now().Add(w.servers.patience)
		}
	}
	w.head, w.seen = w.head[:0], 0
}
