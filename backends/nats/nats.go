package nats

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

// DefaultPrefix is the prefix of keys if none is given.
const DefaultPrefix = "elector"

// minTTL leaves a request 75 ms, a sixth of the time for which a holder trusts its
// lease.
const minTTL = 500 * time.Millisecond

// A Backend keeps each record in a key of a bucket. Open and New make it.
type Backend struct {
	base       *backends.Base
	nc         conn
	bucket     string
	prefix     string
	under      calls
	silence    silence
	replicated atomic.Bool                 // the stream has more than one replica
	noInbox    atomic.Pointer[deniedError] // no answer can be received
	refusal    atomic.Pointer[error]       // why no connection can be made again
	unread     atomic.Pointer[error]       // why credentials could not be read
	aside      sync.WaitGroup              // what runs beside the calls
	owned      bool                        // the connection is one that Open made
	release    func() error                // of what Open made
}

// A conn is what the package needs of a *natsgo.Conn.
type conn interface {
	RequestMsgWithContext(context.Context, *natsgo.Msg) (*natsgo.Msg, error)
	SubscribeSync(subject string) (*natsgo.Subscription, error)
	NewInbox() string
	Servers() []string
	IsConnected() bool
	ForceReconnect() error
	ConnectedServerVersion() string
	ConnectedClusterName() string
}

var (
	_ conn               = (*natsgo.Conn)(nil)
	_ backends.Watcher   = (*Backend)(nil)
	_ backends.Lister    = (*Backend)(nil)
	_ backends.Inspector = (*Backend)(nil)
)

// Options are the options of New. Bucket is required; of the other fields the zero value
// means the default.
type Options struct {
	// Bucket is the name of the bucket. It has no default.
	Bucket string

	// Prefix is what keys begin with, before a dot and the name of the election. The
	// default is DefaultPrefix.
	Prefix string

	// Create makes New create a missing bucket. Without it a missing bucket is
	// ErrMisconfigured: a URL of a wrong server or account would otherwise have a bucket of
	// its own, and a second leader.
	Create bool

	// Replicas is the number of servers that keep the bucket if New creates it. The
	// default is 3 on a cluster, and 1 on a server that is in none.
	Replicas int

	// ReadOnly makes a handle that only reads and creates nothing: see
	// [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend in a bucket, on your own connection, which Close leaves open. It
// returns the errors of a [backends.Opener], and ErrOptions of package backends for a
// connection or options that it cannot use. New blocks for one request, or three with
// Create, at most 10 s if ctx has no deadline.
//
// Make the connection with ReconnectBufSize(-1): otherwise the library keeps writes while
// it reconnects, and sends them late, which is harmless but wakes other candidates. Set
// PingInterval to a few seconds, or a silent network goes unnoticed. A missing permission
// shows as no answer, because it reaches only the connection's error handler. The package
// never moves your connection to another server: if calls fail for long on a server that is
// cut off from its cluster, call ForceReconnect.
func New(ctx context.Context, nc *natsgo.Conn, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of nats.New", backends.ErrOptions)
	if nc == nil {
		return nil, fmt.Errorf("%w: the connection is nil; make one with nats.Connect", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	bucket, prefix := options.Bucket, cmp.Or(options.Prefix, DefaultPrefix)
	if !plainBucket.MatchString(bucket) {
		return nil, fmt.Errorf("%w: Bucket is %q; name the bucket: %s", errOptions, bucket, bucketRule)
	}
	if !plainPrefix.MatchString(prefix) {
		return nil, fmt.Errorf("%w: Prefix is %q; %s", errOptions, prefix, prefixRule)
	}
	if options.Replicas < 0 || options.Replicas > 5 {
		return nil, fmt.Errorf("%w: Replicas is %d, not between 1 and 5, or 0 for the default", errOptions, options.Replicas)
	}
	var hosts []string
	for _, server := range nc.Servers() {
		if u, err := url.Parse(server); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	b := newBackend((&url.URL{Scheme: "nats", Host: strings.Join(hosts, ","), Path: "/" + bucket}).String(), bucket, prefix)
	b.nc = nc
	b.base.SetReadOnly(options.ReadOnly)
	if err := b.base.Open(ctx, patience, func(ctx context.Context) error { return b.prepare(ctx, *options) }); err != nil {
		return nil, err
	}
	return b, nil
}

func newBackend(store, bucket, prefix string) *Backend {
	b := &Backend{bucket: bucket, prefix: prefix, release: func() error { return nil }}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		m, err := b.latest(ctx, name, b.subject(name)+".*.*")
		if err != nil {
			return backends.Record{}, err
		}
		return b.record(name, m)
	})
}

// latest returns the latest message on the subjects as a linearizable read finds it. The
// read is made for an election.
func (b *Backend) latest(ctx context.Context, election, subjects string) (message, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		m, err := b.get(ctx, subjects)
		if err != nil || !b.replicated.Load() || b.base.ReadOnly() {
			return m, err
		}
		if is, err := b.confirm(ctx, election, subjects, m.Seq); is || err != nil {
			return m, err
		}
		select {
		case <-ctx.Done():
			b.unanswered(ctx.Err())
			return message{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// last returns the latest message of an election that the stream's leader has, the zero
// one if there is none.
func (b *Backend) last(ctx context.Context, name string) (message, error) {
	return b.get(ctx, b.subject(name)+".*.*")
}

// Swap implements [backends.Backend]. It is one message, which is sent again until the
// stream decides it, see put.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		s := state{life: rand.Text()}
		if prev.Exists() {
			var ok bool
			if s, ok = parseState(prev.Version); !ok {
				return next, backends.ErrConflict // the version to replace is not from NATS
			}
		}
		w := b.write(name, s, prev, next)
		seq, err := b.put(ctx, name, w)
		if errors.Is(err, backends.ErrConflict) && !prev.Exists() {
			// A key that was deleted has a marker in its place, with a sequence.
			var m message
			if m, err = b.last(ctx, name); err != nil {
				return next, err
			}
			if !m.marker() {
				return next, backends.ErrConflict
			}
			// In the same life: the guards of the acquisition before compare its keys.
			if s.life, _, err = b.place(name, m); err != nil {
				return next, err
			}
			w = b.write(name, s, prev, next)
			w.expected = m.Seq
			seq, err = b.put(ctx, name, w)
		}
		if err != nil {
			return next, err
		}
		s.seq = seq
		if w.term {
			s.term = seq
		}
		next.Version = s.version()
		return next, nil
	})
}

// write returns the message that replaces prev, whose state is s. The zero sequence
// stands for none.
func (b *Backend) write(name string, s state, prev, next backends.Record) write {
	w := write{of: b.subject(name) + ".*.*", expected: s.seq, body: backends.Encode(name, next), term: !renews(prev, next)}
	life := b.subject(name) + "." + s.life
	if prev.Exists() {
		w.of = life + ".*"
	}
	w.subject = life + leafTerm
	if !w.term {
		w.subject, w.header = life+leafRenewal, termHeader(s.term)
	}
	return w
}

// renews reports whether a change leaves the acquisition as it is.
func renews(prev, next backends.Record) bool {
	return !next.Vacant() && !prev.Vacant() && next.Attempt.Nonce == prev.Attempt.Nonce
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, PushesRenewals: true, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls and watches under way, and
// closes the connection unless that was given to New.
func (b *Backend) Close() error { return b.base.Close(b.release) }
