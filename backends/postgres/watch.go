package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/store"
)

// echoes is how long a notification may take.
const echoes = 5 * time.Second

// Watch implements [backends.Watcher], with the errors of Load. With NoListen it
// returns ErrMisconfigured.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error { return b.watch(ctx, name, changed) })
}

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if b.noListen {
		return errNoListen
	}
	return b.hub.Watch(ctx, name, func() error {
		reading, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		o, _ := b.reads.Load(reading, name, store.Ask{Rank: store.Seek, Timeout: patience}, func() {}).Wait(reading) // with other Watches that were woken
		r, err := o.Record, o.Err
		if err == nil {
			changed(r)
		}
		return err
	})
}

// listen connects, listens, and wakes the Watches of each name in a notification,
// until the connection is lost or ctx ends.
func (b *Backend) listen(ctx context.Context, ready func(), wake func(name string)) error {
	return b.base.Do(ctx, "listening for changes", func(ctx context.Context) error { return b.listens(ctx, ready, wake) })
}

func (b *Backend) listens(ctx context.Context, ready func(), wake func(name string)) error {
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
	ready()
	for {
		payload, err := next(ctx, conn)
		if err != nil {
			return err
		}
		wake(payload)
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
