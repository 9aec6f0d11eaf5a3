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
