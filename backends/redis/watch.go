package redis

import (
	"context"
	"errors"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
)

// silence is how long nothing may arrive before the connection is asked for an answer.
const silence = 10 * time.Second

// Watch implements [backends.Watcher], with the errors of Load.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error { return b.watch(ctx, name, changed) })
}

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.hub.Watch(ctx, name, func() error {
		reading, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		outcomes, err := b.read(reading, []string{name})
		if err == nil {
			err = outcomes[0].Err
		}
		if err == nil {
			changed(outcomes[0].Record)
		}
		return err
	})
}

// listen subscribes, and wakes the Watches of each name in a message, until the
// connection is lost or ctx ends. The client library would subscribe again, and what was
// sent meanwhile would be lost.
func (b *Backend) listen(ctx context.Context, ready func(), wake func(name string)) error {
	return b.base.Do(ctx, "listening for changes", func(ctx context.Context) error { return b.listens(ctx, ready, wake) })
}

func (b *Backend) listens(ctx context.Context, ready func(), wake func(name string)) error {
	channel := b.client.Subscribe(ctx)
	defer channel.Close()
	defer context.AfterFunc(ctx, func() { channel.Close() })() // it reads without the context
	connecting := &tie{life: ctx}
	defer connecting.undo()
	starting, cancel := context.WithTimeout(context.WithValue(ctx, tied{}, connecting), patience)
	defer cancel()
	if err := channel.Subscribe(starting, b.options.Prefix); err != nil {
		return err
	}
	asked := false
	for subscribed := false; ; {
		message, err := channel.ReceiveTimeout(ctx, silence)
		switch timeout := net.Error(nil); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &timeout) && timeout.Timeout() && !asked && subscribed:
			asked = true
			if err := channel.Ping(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		asked = false
		switch m := message.(type) {
		case *goredis.Subscription:
			if !subscribed {
				subscribed = true
				connecting.undo()
				ready()
			}
		case *goredis.Message:
			wake(m.Payload)
		}
	}
}

// A tie closes a connection when the context ends, until undo: while it is being made,
// nothing else does.
type tie struct {
	life context.Context
	stop func() bool
}

// tied is the key of a tie in a context.
type tied struct{}

func (t *tie) close(conn net.Conn) { t.stop = context.AfterFunc(t.life, func() { conn.Close() }) }

func (t *tie) undo() {
	if t.stop != nil {
		t.stop()
	}
}
