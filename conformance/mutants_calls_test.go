package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

var callMutants = map[string]mutant{
	"a wrong set-up is not found": {caughtBy: "bad/schema", rule: "opening a store that is set up wrongly must fail",
		setups: map[string]func(testing.TB) error{"wrong": func(testing.TB) error { return nil }}},
	"a wrong set-up is an untyped error": {caughtBy: "bad/schema", rule: "the error must be ErrMisconfigured",
		setups: map[string]func(testing.TB) error{"wrong": func(testing.TB) error { return context.DeadlineExceeded }}},
	"a wrong set-up is not explained": {caughtBy: "bad/schema", rule: "the error must say what is wrong",
		setups: map[string]func(testing.TB) error{"wrong": func(testing.TB) error { return backends.ErrMisconfigured }}},
	"Load does not look at its context": {caughtBy: "ctx/cancel", rule: "a call returns when its context ends", waits: true, handle: func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			if ctx.Err() != nil {
				select {} // as if the store did not answer
			}
			return b.Backend.Load(ctx, name)
		}
	}},
	"every error is a conflict": {caughtBy: "ctx/cancel", rule: "no other error may be reported as one", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if err != nil {
				err = backends.ErrConflict
			}
			return r, err
		}
	}},
	"a failed Load is an empty record": {caughtBy: "ctx/cancel", rule: "a Load that cannot read returns an error, never an empty record", handle: func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			if err != nil {
				return backends.Record{}, nil
			}
			return r, nil
		}
	}},
	"an ended context is a conflict": {caughtBy: "ctx/cancel", rule: "ErrConflict means that the store holds another version", handle: ended(func(b *broken, _ string, next backends.Record) (backends.Record, error) {
		return next, backends.ErrConflict
	})},
	"an ended context is a refusal": {caughtBy: "ctx/cancel", rule: "an ended context must not be reported as a permanent error", handle: ended(func(b *broken, _ string, next backends.Record) (backends.Record, error) {
		return next, backends.ErrDenied
	})},
	"an ended context is success": {caughtBy: "ctx/cancel", rule: "a Swap that returns no error was applied", handle: ended(func(b *broken, _ string, next backends.Record) (backends.Record, error) {
		return next, nil
	})},
	"an ended context is half a write": {caughtBy: "ctx/cancel", rule: "a Swap whose context ends is applied completely or not at all", handle: ended(func(b *broken, name string, next backends.Record) (backends.Record, error) {
		next.Holder = ""
		b.current(context.Background(), name, next)
		return next, context.Canceled
	})},
	"an ended context breaks the handle": {caughtBy: "ctx/cancel", rule: "a handle works until it is closed", handle: ended(func(b *broken, name string, next backends.Record) (backends.Record, error) {
		b.Backend.Close()
		return next, context.Canceled
	})},
	"every error of the client is a conflict": {caughtBy: "amb/client", rule: "no other error may be reported as one",
		handle: clientFails(func(next backends.Record, _ bool) (backends.Record, error) { return next, backends.ErrConflict })},
	"a write that was applied is a conflict": {caughtBy: "amb/client", rule: "no other error may be reported as one",
		handle: clientFails(func(next backends.Record, applied bool) (backends.Record, error) {
			if applied {
				return next, backends.ErrConflict
			}
			return next, errLost
		})},
	"a lost connection is a lost mark": {caughtBy: "amb/client", rule: "must not be reported as a refusal",
		handle: clientFails(func(next backends.Record, _ bool) (backends.Record, error) { return next, backends.ErrDeposed })},
	"a lost connection is not tried": {caughtBy: "amb/client", rule: "must not be reported as a refusal",
		handle: clientFails(func(next backends.Record, _ bool) (backends.Record, error) { return next, backends.ErrNotTried })},
	"a lost connection is permanent": {caughtBy: "amb/client", rule: "must not be reported as a permanent error",
		handle: clientFails(func(next backends.Record, _ bool) (backends.Record, error) { return next, backends.ErrDenied })},
	"a lost connection is success": {caughtBy: "amb/client", rule: "that returns no error was applied",
		handle: clientFails(func(next backends.Record, _ bool) (backends.Record, error) { return next, nil })},
	"a batch of lost renewals is not tried": {caughtBy: "amb/client", rule: "the error of a SwapMany was", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := b.oneByOne(ctx, renewals)
			for i := range outcomes {
				if outcomes[i].Err == errLost {
					outcomes[i].Err = backends.ErrNotTried
				}
			}
			return outcomes
		}
	}},
	"an election without a connection has no record": {caughtBy: "amb/client", rule: "a Load that cannot read returns an error, never an empty record", handle: func(b *broken, _ *state) {
		load := b.load
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := load(ctx, name)
			if err == errLost {
				err = nil
			}
			return r, err
		}
	}},
	"a lost connection ends the handle": {caughtBy: "amb/client", rule: "a handle works again", waits: true, handle: func(b *broken, _ *state) {
		load := b.load
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := load(ctx, name)
			if err == errLost {
				b.Backend.Close()
			}
			return r, err
		}
	}},
	"a second Close panics": {caughtBy: "close/idempotent", rule: "a call panicked, and no call may", handle: func(b *broken, _ *state) {
		closed := make(chan struct{})
		b.close = func() error { close(closed); return b.Backend.Close() }
	}},
	"a second Close is an error": {caughtBy: "close/idempotent", rule: "Close may be called again", handle: func(b *broken, _ *state) {
		var closed atomic.Bool
		b.close = func() error {
			if closed.Swap(true) {
				return errors.New("closed already")
			}
			return b.Backend.Close()
		}
	}},
	"Close waits for itself": {caughtBy: "close/idempotent", rule: "Close returns", waits: true, handle: func(b *broken, _ *state) {
		var mutex sync.Mutex
		b.close = func() error { mutex.Lock(); return b.Backend.Close() }
	}},
	"Close leaves a goroutine": {caughtBy: "close/idempotent", rule: "Close ends the goroutines", waits: true, handle: func(b *broken, _ *state) {
		go func() { select {} }()
	}},
	"Close closes every handle": {caughtBy: "close/idempotent", rule: "a handle works until it is closed", handle: func(b *broken, s *state) {
		load := b.load
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			if s.exchange(backends.Record{}).Exists() {
				return backends.Record{}, backends.ErrUnavailable
			}
			return load(ctx, name)
		}
		b.close = func() error { s.exchange(backends.Record{Version: "closed"}); return b.Backend.Close() }
	}},
	"Load works after Close": {caughtBy: "close/idempotent", rule: "after Close every call returns an error", handle: func(b *broken, _ *state) { b.load = b.store.Handle().Load }},
	"Swap works after Close": {caughtBy: "close/idempotent", rule: "after Close every call returns an error", handle: func(b *broken, _ *state) { b.swap = b.store.Handle().Swap }},
	"Swap writes after Close": {caughtBy: "close/idempotent", rule: "and writes nothing", handle: func(b *broken, _ *state) {
		other := b.store.Handle()
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, _ := other.Swap(ctx, name, prev, next)
			_, err := b.Backend.Load(ctx, name)
			return r, err
		}
	}},
	"Load panics after Close": {caughtBy: "close/idempotent", rule: "after Close every call returns an error", handle: func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			if err != nil {
				panic(err)
			}
			return r, err
		}
	}},
	"the store has no name": {caughtBy: "store/describe", rule: "Describe must name the store", handle: described(func(d *backends.Description) { d.Store = "" })},
	"the store's name has a password": {caughtBy: "store/describe", rule: "Describe must not show a password",
		handle: described(func(d *backends.Description) { d.Store = "memory://user:hunter2@host/" })},
	"the store's name has a password in its query": {caughtBy: "store/describe", rule: "Describe must not show a password",
		handle: described(func(d *backends.Description) { d.Store = "memory://host/?sslpassword=hunter2" })},
	"the least TTL is no TTL": {caughtBy: "store/describe", rule: "MinTTL is between 0 and 24 h",
		handle: described(func(d *backends.Description) { d.MinTTL = 48 * time.Hour })},
	"the store's name changes": {caughtBy: "store/describe", rule: "Describe always returns the same", handle: func(b *broken, _ *state) {
		b.close = func() error {
			b.describe = func() backends.Description { return backends.Description{Store: "closed"} }
			return b.Backend.Close()
		}
	}},
}
