package nats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

// The servers may put a consumer on one that has just died, and then nothing answers the
// request: a watch ends, so that its caller watches again.
func TestWatchUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		b := f.backend()
		f.instead("", func(ctx context.Context, _ *natsgo.Msg) (*natsgo.Msg, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		begun := time.Now()
		if err := b.consume(t.Context(), "a", "_INBOX.x", 1); !errors.Is(err, errSilent) || time.Since(begun) != silent {
			t.Errorf("got %v after %v", err, time.Since(begun))
		} else if _, kind := b.classify(err); kind != backends.ErrUnavailable {
			t.Errorf("%v is %v", err, kind)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.consume(ctx, "a", "_INBOX.x", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

// The client waits for a dead connection to take what it sends: a request and a watch end
// with their context.
func TestEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		b := f.backend()
		lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: mustSwap(t, b, "a", backends.Record{}, record)}}
		dead := make(chan struct{})
		f.instead("", func(context.Context, *natsgo.Msg) (*natsgo.Msg, error) {
			f.waits()
			return nil, natsgo.ErrConnectionClosed
		})
		f.dead = dead
		for name, call := range map[string]func(context.Context) error{
			"Load": func(ctx context.Context) error { _, err := b.Load(ctx, "a"); return err },
			"Swap": func(ctx context.Context) error {
				_, err := b.Swap(ctx, "b", backends.Record{}, record)
				return err
			},
			"Put":     func(ctx context.Context) error { _, err := Put(ctx, lease, "data", nil); return err },
			"prepare": func(ctx context.Context) error { return b.prepare(ctx, Options{}) },
			"Watch":   func(ctx context.Context) error { return b.Watch(ctx, "a", func(backends.Record) {}) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
				t.Errorf("%s: got %v after %v", name, err, time.Since(begun))
			}
			cancel()
		}
		close(dead)
	})
}
