package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elector-go/elector/backends"
)

var presenceMutants = map[string]mutant{
	"a removed mark is not told": {caughtBy: "presence/deposed", rule: "removing a mark of presence deposes its holder", waits: true,
		handle: attends(func(ctx context.Context, _ *broken, _ string, _ backends.Record) error {
			<-ctx.Done()
			return ctx.Err()
		})},
	"a removed mark is some error": {caughtBy: "presence/deposed", rule: "WatchPresence must return ErrDeposed",
		handle: attends(func(ctx context.Context, b *broken, name string, held backends.Record) error {
			return errors.New(b.Backend.WatchPresence(ctx, name, held).Error())
		})},
	"a renewal is taken for a removed mark": {caughtBy: "presence/deposed", rule: "renewals keep the mark", handle: func(b *broken, _ *state) {
		renewed := make(chan struct{}, 8)
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			renewed <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			return b.Backend.Swap(ctx, name, prev, next)
		}
		b.attend = func(context.Context, string, backends.Record) error {
			<-renewed
			return backends.ErrDeposed
		}
	}},
	"who was deposed renews": {caughtBy: "presence/deposed", rule: "a deposed holder cannot renew", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if errors.Is(err, backends.ErrDeposed) {
				return next, nil
			}
			return r, err
		}
	}},
	"the mark is the next holder's to remove": {caughtBy: "presence/deposed", rule: "a takeover replaces the mark", waits: true,
		handle: attends(func(ctx context.Context, b *broken, name string, held backends.Record) error {
			for {
				err := b.Backend.WatchPresence(ctx, name, held)
				if r, _ := b.Backend.Load(ctx, name); r.Attempt.Nonce == held.Attempt.Nonce || ctx.Err() != nil {
					return err
				}
				<-ctx.Done()
			}
		})},
	"WatchPresence does not end": {caughtBy: "presence/end", rule: "WatchPresence returns when its context ends", waits: true,
		handle: attends(func(ctx context.Context, b *broken, name string, held backends.Record) error {
			return b.Backend.WatchPresence(context.WithoutCancel(ctx), name, held)
		})},
	"the end of a WatchPresence deposes": {caughtBy: "presence/end", rule: "when its context ends, WatchPresence must not report",
		handle: attends(func(ctx context.Context, b *broken, name string, held backends.Record) error {
			b.Backend.WatchPresence(ctx, name, held)
			return backends.ErrDeposed
		})},
	"WatchPresence leaves a goroutine": {caughtBy: "presence/end", rule: "a WatchPresence that has returned leaves nothing behind", waits: true,
		handle: attends(func(ctx context.Context, b *broken, name string, held backends.Record) error {
			go func() { select {} }()
			return b.Backend.WatchPresence(ctx, name, held)
		})},
	"WatchPresence does not end with the handle": {caughtBy: "presence/end", rule: "returns an error when its handle is closed", waits: true,
		handle: attends(func(ctx context.Context, b *broken, name string, held backends.Record) error {
			return b.store.Handle().WatchPresence(ctx, name, held)
		})},
}

// attends makes a store whose WatchPresence is another one.
func attends(watch func(ctx context.Context, b *broken, name string, held backends.Record) error) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.attend = func(ctx context.Context, name string, held backends.Record) error { return watch(ctx, b, name, held) }
	}
}
