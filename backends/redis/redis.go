package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/listening"
	"github.com/elector-go/elector/internal/setup"
)

// DefaultPrefix is the prefix of keys if none is given.
const DefaultPrefix = "elector:"

// maxBatch bounds the elections in a request. The server serves no other client
// meanwhile.
const maxBatch = 100

// maxCalls bounds the connections of a handle, besides that of its Watches.
const maxCalls = 8

// A Backend keeps each record in one key. Open and New make it.
type Backend struct {
	base    *backends.Base
	client  *goredis.Client
	servers *servers
	options Options
	user    string
	calls   chan struct{} // has a value for each call under way
	setup   *setup.Tries  // of a connection
	closed  atomic.Bool
	hub     listening.Hub
}

var (
	_ backends.Watcher      = (*Backend)(nil)
	_ backends.BatchSwapper = (*Backend)(nil)
	_ backends.BatchLoader  = (*Backend)(nil)
	_ backends.Lister       = (*Backend)(nil)
	_ backends.Inspector    = (*Backend)(nil)
)

// call makes a request, when fewer than maxCalls are under way. The client library ends
// it at the deadline of its context, and not when that is cancelled. If no connection is
// free, one is set up first, which may take longer than the request.
func call[T any](ctx context.Context, b *Backend, request func() (T, error)) (none T, err error) {
	if !b.free() {
		if err := b.setup.Do(ctx); err != nil {
			return none, err
		}
	}
	return backends.WithContext(ctx, b.base, func() (result T, err error) {
		err = b.inTurn(ctx, func() error { result, err = request(); return err })
		return result, err
	})
}

// inTurn calls f when fewer than maxCalls are under way.
func (b *Backend) inTurn(ctx context.Context, f func() error) error {
	select {
	case b.calls <- struct{}{}:
		defer func() { <-b.calls }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// free reports whether a connection is set up and serves no call.
func (b *Backend) free() bool { return b.client.PoolStats().IdleConns > 0 }

// connect sets up a connection, unless a call has left one meanwhile.
func (b *Backend) connect(ctx context.Context) error {
	return b.inTurn(ctx, func() error {
		if b.free() {
			return nil
		}
		return b.client.Ping(ctx).Err()
	})
}

// Load implements [backends.Backend]. Besides the errors that it documents, Load returns
// ErrReadOnly from a replica, ErrMisconfigured from a server that may lose writes, and
// ErrUnavailable from one that does not answer.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		outcomes, err := b.read(ctx, []string{name})
		if err != nil {
			return backends.Record{}, err
		}
		return outcomes[0].Record, outcomes[0].Err
	})
}

// LoadMany implements [backends.BatchLoader], with the further errors of Load.
func (b *Backend) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.base.LoadMany(ctx, names, func(ctx context.Context) ([]backends.Outcome, error) { return b.read(ctx, names) })
}

// read asks for the server's role and the records in one pipeline. A server that is no
// longer the primary would show old records.
func (b *Backend) read(ctx context.Context, names []string) ([]backends.Outcome, error) {
	var replication *goredis.StringCmd
	answers, err := call(ctx, b, func() (answers []*goredis.StringCmd, err error) {
		commands, err := b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			if !b.options.ReadOnly {
				replication = p.Info(ctx, "replication")
			}
			for _, name := range names { // MGET takes a key of another type for none
				answers = append(answers, p.Get(ctx, b.options.Prefix+name))
			}
			return nil
		})
		// If the server refuses a new connection, the client library returns that and leaves
		// the commands as if each had an empty answer.
		if slices.ContainsFunc(commands, func(c goredis.Cmder) bool { return answered(err) && c.Err() == err }) {
			err = nil // each answer has its own
		}
		return answers, err
	})
	if err != nil {
		return nil, err
	}
	if replication != nil {
		if replication.Err() != nil {
			return nil, replication.Err()
		}
		if err := b.options.Durability.checkReplication(parseInfo(replication.Val())); err != nil {
			if errors.Is(err, backends.ErrReadOnly) {
				b.leave(ctx)
			}
			return nil, err
		}
	}
	outcomes := make([]backends.Outcome, len(names))
	for i, answer := range answers {
		outcomes[i].Record, outcomes[i].Err = decode(names[i], answer)
	}
	return outcomes, nil
}

// leave closes connections to a server that has become a replica, so that another one is
// tried: it keeps them, and they live for a minute. The client library closes the one on which
// a write is refused, and takes that which was used last.
func (b *Backend) leave(ctx context.Context) {
	for range maxCalls {
		if _, err := b.write(ctx, nil); !is(err, "READONLY") {
			return
		}
	}
}

// decode returns the record, whose version is its content: no content ever comes back,
// because each write has another attempt. So this holds too if the server loses its data or gets
// back those of before.
func decode(name string, answer *goredis.StringCmd) (backends.Record, error) {
	content, err := answer.Bytes()
	switch {
	case errors.Is(err, goredis.Nil):
		return backends.Record{}, nil
	case is(err, "WRONGTYPE"):
		return backends.Record{}, backends.Foreign("its key is not a string")
	case err != nil:
		return backends.Record{}, err
	}
	r, err := backends.Decode(name, content)
	if err != nil {
		return backends.Record{}, err
	}
	r.Version = backends.Version(content)
	return r, nil
}

// Swap implements [backends.Backend], with the further errors of Load. It is one script.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		outcomes, err := b.write(ctx, []backends.Change{{Name: name, Prev: prev, Next: next}})
		if err != nil {
			return backends.Record{}, err
		}
		return outcomes[0].Record, outcomes[0].Err
	})
}

// SwapMany implements [backends.BatchSwapper]: one script that compares and swaps each
// record for itself.
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return b.base.SwapMany(ctx, changes, func(ctx context.Context) ([]backends.Outcome, error) {
		outcomes, err := b.write(ctx, changes)
		for i, o := range outcomes {
			if o.Err != nil && !errors.Is(o.Err, backends.ErrConflict) {
				outcomes[i].Err = fmt.Errorf("%w: %w", backends.ErrNotTried, o.Err)
			}
		}
		return outcomes, err
	})
}

func (b *Backend) write(ctx context.Context, changes []backends.Change) ([]backends.Outcome, error) {
	keys, args := make([]string, len(changes)), []any{string(b.options.Durability), b.options.Prefix}
	outcomes := make([]backends.Outcome, len(changes))
	for i, c := range changes {
		content := backends.Encode(c.Name, c.Next)
		news := ""
		if !renews(c.Prev, c.Next) {
			news = c.Name
		}
		keys[i], args = b.options.Prefix+c.Name, append(args, string(c.Prev.Version), content, news)
		outcomes[i].Record = c.Next
		outcomes[i].Record.Version = backends.Version(content)
	}
	results, err := call(ctx, b, func() ([]any, error) { return swap.Run(ctx, b.client, keys, args...).Slice() })
	switch {
	case err != nil:
		return nil, err
	case len(results) != len(changes):
		return nil, errNotRedis
	}
	for i, result := range results {
		switch result {
		case int64(1):
		case int64(0):
			outcomes[i] = backends.Outcome{Err: backends.ErrConflict}
		default:
			err, ok := result.(error)
			if !ok {
				return nil, errNotRedis
			}
			outcomes[i] = backends.Outcome{Err: err}
		}
	}
	return outcomes, nil
}

// renews reports whether a change is no news for a Watch.
func renews(prev, next backends.Record) bool {
	return prev.Exists() && prev.Holder == next.Holder && prev.Attempt.Nonce == next.Attempt.Nonce && prev.Value == next.Value && prev.Extensions == next.Extensions
}

// List implements [backends.Lister], with the further errors of Load. It goes through all
// keys of the database.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		return call(ctx, b, func() (names []string, err error) {
			if !b.options.ReadOnly {
				replication, err := b.client.Info(ctx, "replication").Result()
				if err != nil {
					return nil, err
				}
				if err := b.options.Durability.checkReplication(parseInfo(replication)); err != nil {
					return nil, err
				}
			}
			keys := b.client.Scan(ctx, 0, escape.Replace(b.options.Prefix)+"*", 1000).Iterator()
			for keys.Next(ctx) {
				names = append(names, strings.TrimPrefix(keys.Val(), b.options.Prefix))
			}
			return names, keys.Err()
		})
	})
}

// escape makes a pattern that matches a text.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MaxSwaps: maxBatch, MaxLoads: maxBatch, ReadOnly: b.base.ReadOnly(), Lossy: b.options.Durability.lossy()}
}

// Close implements [backends.Backend]. It ends the calls and watches under way and
// closes the connections.
func (b *Backend) Close() error {
	return b.base.Close(func() error {
		b.closed.Store(true)
		b.setup.Stop()
		b.hub.Wait() // the client library would log that its connection was closed
		return b.client.Close()
	})
}
