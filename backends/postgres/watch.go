package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
)

// echoes is how long a notification may take.
const echoes = 5 * time.Second

// A watcher is a Backend that listens.
type watcher struct {
	*Backend
	mutex sync.Mutex
	now   *ear // nil while nobody watches
}

var _ backends.Watcher = (*watcher)(nil)

// An ear is one listening connection. It is not repaired: when it is lost, all
// its Watches end, and the next one starts another.
type ear struct {
	end   context.CancelFunc
	ready chan struct{}            // closed once the server listens for us
	gone  chan struct{}            // closed once the connection is closed, for err
	err   error                    // why it ended
	wake  map[chan struct{}]string // the Watches, by name; under the watcher's mutex
}

// Watch implements [backends.Watcher], with the errors of Load.
func (w *watcher) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if err := backends.CheckName(name); err != nil {
		return err
	}
	if w.life.Err() != nil {
		return errClosed
	}
	e, wake := w.join(name)
	defer w.leave(e, wake)
	ready := e.ready
	for {
		select {
		case <-ready: // at first, so that no change is lost between listening and reading
			ready = nil
		case <-wake:
		case <-e.gone:
			return e.err
		case <-ctx.Done():
			return ctx.Err()
		}
		reading, cancel := context.WithTimeout(ctx, patience)
		r, err := w.Load(reading, name)
		cancel()
		if err != nil {
			return err
		}
		changed(r)
	}
}

// Close ends the listening connection as well, see [Backend.Close].
func (w *watcher) Close() error {
	err := w.Backend.Close()
	w.mutex.Lock()
	e := w.now
	w.mutex.Unlock()
	if e != nil {
		<-e.gone // it lives no longer than the handle
	}
	return err
}

func (w *watcher) join(name string) (*ear, chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.now == nil {
		w.now = &ear{ready: make(chan struct{}), gone: make(chan struct{}), wake: map[chan struct{}]string{}}
		ctx, end := context.WithCancel(w.life)
		w.now.end = end
		go w.listen(ctx, w.now)
	}
	wake := make(chan struct{}, 1)
	w.now.wake[wake] = name
	return w.now, wake
}

// leave ends the ear with its last Watch, and waits until it has ended.
func (w *watcher) leave(e *ear, wake chan struct{}) {
	w.mutex.Lock()
	delete(e.wake, wake)
	last := len(e.wake) == 0
	if last && w.now == e {
		w.now = nil
	}
	w.mutex.Unlock()
	if last {
		e.end()
		<-e.gone
	}
}

func (w *watcher) listen(ctx context.Context, e *ear) {
	err := w.hear(ctx, e)
	w.mutex.Lock()
	if w.now == e {
		w.now = nil
	}
	w.mutex.Unlock()
	e.err = w.explain(ctx, "listening for changes", err)
	e.end()
	close(e.gone)
}

// hear connects, listens, and wakes the Watches of each name that is notified,
// until the connection is lost or ctx ends.
func (w *watcher) hear(ctx context.Context, e *ear) error {
	config := w.pool.Config()
	starting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if config.BeforeConnect != nil { // it may fetch a password
		if err := config.BeforeConnect(starting, config.ConnConfig); err != nil {
			return err
		}
	}
	config.ConnConfig.OnNotification = nil // so that WaitForNotification gets them
	conn, err := pgx.ConnectConfig(starting, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		conn.Close(closing) // says goodbye if it can; closes the socket in any case
	}()
	if _, err := conn.Exec(starting, "listen "+pgx.Identifier{w.table.channel()}.Sanitize()); err != nil {
		return err
	}
	if err := w.echo(starting, conn); err != nil {
		return err
	}
	close(e.ready)
	for {
		name, err := next(ctx, conn)
		if err != nil {
			return err
		}
		w.mutex.Lock()
		for wake, watched := range e.wake {
			if watched == name {
				select {
				case wake <- struct{}{}:
				default: // it is about to read anyhow
				}
			}
		}
		w.mutex.Unlock()
	}
}

// echo notifies the connection that listens, from another one, and waits until
// that arrives. A transaction pooler says yes to LISTEN, and gives whatever that
// server connection then hears to nobody. What else arrives is no loss: the
// Watches have not read yet.
func (w *watcher) echo(ctx context.Context, conn *pgx.Conn) error {
	word := "." + rand.Text() // no election has such a name
	_, err := w.queryRow(ctx, "select pg_notify($1, $2)::text, set_config('synchronous_commit', 'off', true)", []any{w.table.channel(), word}, nil, nil)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, echoes)
	defer cancel()
	for heard := ""; heard != word; {
		if heard, err = next(waiting, conn); err != nil {
			if ctx.Err() == nil && waiting.Err() != nil {
				return errDeaf
			}
			return err
		}
	}
	return nil
}

// next returns the payload of the next notification. A network that has gone
// dark says nothing, like a server with no news: so it asks after 30 s.
func next(ctx context.Context, conn *pgx.Conn) (string, error) {
	for {
		quiet, cancel := context.WithTimeout(ctx, 30*time.Second)
		n, err := conn.WaitForNotification(quiet)
		cancel()
		if err == nil {
			return n.Payload, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return "", err
		}
		asking, cancel := context.WithTimeout(ctx, patience)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return "", err
		}
	}
}
