package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
)

// echoes is how long a notification may take.
const echoes = 5 * time.Second

// A listener is the connection that listens for all Watches of a Backend. It is
// not repaired: when it is lost, all its Watches end, and the next one starts
// another.
type listener struct {
	ctx   context.Context
	end   context.CancelFunc
	ready chan struct{}              // closed when the server listens for us
	gone  chan struct{}              // closed when the connection is closed, for err
	err   error                      // why it ended
	all   map[string]map[*watch]bool // the Watches by name; under the Backend's mutex
}

// A watch is a Watch that runs.
type watch struct {
	name string
	wake chan struct{} // holds a value when the record is to be read
}

// Watch implements [backends.Watcher], with the errors of Load. With NoListen it
// returns ErrMisconfigured.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error { return b.watch(ctx, name, changed) })
}

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if b.noListen {
		return errNoListen
	}
	l, w := b.join(name)
	defer b.leave(l, w)
	ready := l.ready
	for {
		select {
		case <-ready: // first, so that no change is lost between listening and reading
			ready = nil
		case <-w.wake:
		case <-l.gone:
			return l.err
		case <-ctx.Done():
			return ctx.Err()
		}
		reading, cancel := context.WithTimeout(ctx, patience)
		r, err := b.reads.Load(reading, name, false, func() {}) // with other Watches that were woken
		cancel()
		if err != nil {
			return err
		}
		changed(r)
	}
}

func (b *Backend) join(name string) (*listener, *watch) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.listener == nil || b.listener.ctx.Err() != nil {
		b.listener = &listener{ready: make(chan struct{}), gone: make(chan struct{}), all: map[string]map[*watch]bool{}}
		b.listener.ctx, b.listener.end = context.WithCancel(context.Background())
		go func(l *listener) {
			l.err = b.base.Do(l.ctx, "listening for changes", func(ctx context.Context) error { return b.listen(ctx, l) })
			l.end()
			close(l.gone)
		}(b.listener)
	}
	w := &watch{name: name, wake: make(chan struct{}, 1)}
	if b.listener.all[name] == nil {
		b.listener.all[name] = map[*watch]bool{}
	}
	b.listener.all[name][w] = true
	return b.listener, w
}

// signal makes a channel hold a value.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // its reader is about to look anyway
	}
}

// leave ends the listener with its last Watch, and waits until it has ended.
func (b *Backend) leave(l *listener, w *watch) {
	b.mutex.Lock()
	if delete(l.all[w.name], w); len(l.all[w.name]) == 0 {
		delete(l.all, w.name)
	}
	last := len(l.all) == 0
	if last {
		l.end()
	}
	b.mutex.Unlock()
	if last {
		<-l.gone
	}
}

// listen connects, listens, and wakes the Watches of each name in a notification,
// until the connection is lost or ctx ends.
func (b *Backend) listen(ctx context.Context, l *listener) error {
	config := b.pool.Config()
	starting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if config.BeforeConnect != nil { // it may fetch a password
		if err := config.BeforeConnect(starting, config.ConnConfig); err != nil {
			return withoutConfig(err)
		}
	}
	config.ConnConfig.OnNotification = nil // so that WaitForNotification gets them
	conn, err := pgx.ConnectConfig(starting, config.ConnConfig)
	if err != nil {
		return withoutConfig(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		conn.Close(closing) // says goodbye if it can; closes the socket in any case
	}()
	if _, err := conn.Exec(starting, "listen "+pgx.Identifier{b.table.channel()}.Sanitize()); err != nil {
		return err
	}
	if err := b.echo(starting, conn); err != nil {
		return err
	}
	close(l.ready)
	for {
		payload, err := next(ctx, conn)
		if err != nil {
			return err
		}
		b.mutex.Lock()
		for w := range l.all[payload] {
			signal(w.wake)
		}
		b.mutex.Unlock()
	}
}

// echo sends a notification to the listening connection, through another one,
// and waits until it arrives. A transaction pooler acknowledges LISTEN, and
// drops what that server connection then hears. Other notifications that arrive
// meanwhile are no loss: the Watches have not read yet.
func (b *Backend) echo(ctx context.Context, conn *pgx.Conn) error {
	word := "." + rand.Text() // no election has such a name
	_, err := b.queryRow(ctx, "select pg_notify($1, $2)::text, set_config('synchronous_commit', 'off', true)", []any{b.table.channel(), word}, nil, nil)
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

// next returns the payload of the next notification. A dead network looks like a
// server without news, so next pings after 30 s.
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
