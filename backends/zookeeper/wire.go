package zookeeper

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// wires connects to the servers, one after the other. The library's own way
// looks up their names once, for ever, and refuses all of them if one is
// unknown; and forgets the names, which TLS needs.
type wires struct {
	hosts    []string
	tls      *tls.Config // nil for none
	patience time.Duration
	life     context.Context // ends with the handle

	mutex     sync.Mutex
	at        int       // the next host
	tried     int       // how many since there was a session that lasted
	since     time.Time // when the present session began; zero if there is none
	current   *wire     // the latest
	err       error     // why there is no session
	exhausted chan struct{}
}

// lasting is how long a session must have lasted for the next search of a server
// to begin without a pause.
const lasting = time.Second

var errNothing = errors.New("not connected yet")

func newWires(hosts []string, config *tls.Config, patience time.Duration) *wires {
	return &wires{hosts: hosts, tls: config, patience: patience, err: errNothing, exhausted: make(chan struct{})}
}

// Init, Len, Next and Connected implement the library's HostProvider. What it
// calls retryStart makes it pause for a second, and forget the requests that it
// has not sent.
func (w *wires) Init(hosts []string) error {
	w.hosts = hosts // in an order of its own
	return nil
}

func (w *wires) Len() int { return len(w.hosts) }

func (w *wires) Next() (host string, retryStart bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	// One that hangs up as soon as it has greeted is as bad as none.
	if !w.since.IsZero() && time.Since(w.since) >= lasting {
		w.tried = 0
	}
	w.since = time.Time{}
	host = w.hosts[w.at]
	w.at = (w.at + 1) % len(w.hosts)
	retryStart = w.tried > 0 && w.tried%len(w.hosts) == 0
	if retryStart && w.tried == len(w.hosts) {
		select {
		case <-w.exhausted:
		default:
			close(w.exhausted) // each has been tried once: see open
		}
	}
	w.tried++
	return host, retryStart
}

func (w *wires) Connected() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.since, w.err = time.Now(), nil
}

func (w *wires) dial(network, address string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(w.life, w.patience)
	defer cancel()
	dialer := &net.Dialer{}
	dial := dialer.DialContext
	if w.tls != nil {
		dial = (&tls.Dialer{NetDialer: dialer, Config: w.tls}).DialContext
	}
	conn, err := dial(ctx, network, address)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.current != nil {
		w.current.Close() // the library leaves it open when the session had expired
		w.current = nil
	}
	if err != nil {
		w.err = fmt.Errorf("%s: %w", address, err)
		return nil, err
	}
	w.current = &wire{Conn: conn, wires: w, address: address}
	return w.current, nil
}

func (w *wires) fail(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.err = err
}

// reason tells why there is no session.
func (w *wires) reason() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.err == nil {
		return errors.New("the connection was lost")
	}
	return w.err
}

func (w *wires) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.current != nil {
		w.current.Close()
	}
}

// A wire is a connection that fails when a request has been sent and no answer
// comes for as long as we have patience. The library waits for two thirds of
// the session timeout, and for the first answer ten times as long: no time
// would be left to find a better server.
type wire struct {
	net.Conn
	wires   *wires
	address string

	mutex   sync.Mutex
	waiting int       // requests without an answer
	due     time.Time // when the next answer must have come; zero if none is missing
	met     bool      // the server has said anything at all

	head []byte // of the message that is coming: its length, and what tells events
	seen int    // how much of it has come
}

// Write is called with one request at a time, the greeting and pings included.
func (w *wire) Write(p []byte) (int, error) {
	w.mutex.Lock()
	if w.waiting++; w.due.IsZero() {
		w.due = time.Now().Add(w.wires.patience)
		w.Conn.SetReadDeadline(w.due)
	}
	w.mutex.Unlock()
	if _, err := w.Conn.Write(p); err != nil {
		// Reading fails then too, and that is how the library may learn of it:
		// an error of Write can block it for ever, because it answers the
		// request twice.
		w.Conn.Close()
	}
	return len(p), nil
}

// SetReadDeadline is called by the library before it waits for a message, and
// with zero when that has begun to come or has come: the deadline then stays
// until the next.
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
		case n > 0 && p[0] != 0: // of the length of a few bytes
			n, err = 0, fmt.Errorf("%w: what answers on %s is not ZooKeeper; check host and port, and whether it speaks TLS (zookeepers://) or not (zookeeper://)", backends.ErrMisconfigured, w.address)
			w.wires.fail(err)
		case err != nil:
			w.wires.fail(fmt.Errorf("%s let us connect and then hung up or said nothing; it may have no quorum, too many connections from here (maxClientCnxns), or speak TLS (zookeepers://): %w", w.address, err))
		}
		w.met = true
	}
	w.follow(p[:n])
	return n, err
}

// follow finds the answers among what comes. Messages begin with their length,
// and the library never reads beyond one; -1 follows if it is an event.
func (w *wire) follow(p []byte) {
	w.seen += len(p)
	w.head = append(w.head, p[:min(len(p), 8-len(w.head))]...)
	if len(w.head) < 8 || w.seen < 4+int(binary.BigEndian.Uint32(w.head)) {
		return
	}
	if event := int32(binary.BigEndian.Uint32(w.head[4:])) == -1; !event {
		w.waiting--
		w.due = time.Time{}
		if w.waiting > 0 {
			w.due = time.Now().Add(w.wires.patience)
		}
	}
	w.head, w.seen = w.head[:0], 0
}
