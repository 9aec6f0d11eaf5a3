package etcd

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// DefaultPrefix is the prefix of keys if none is given.
const DefaultPrefix = "/elector/"

// minTTL leaves a request 75 ms, a sixth of the time for which a holder trusts its
// lease.
const minTTL = 500 * time.Millisecond

// A Backend keeps each record in one key. Open and New make it.
type Backend struct {
	base    *backends.Base
	client  *clientv3.Client
	prefix  string
	own     bool     // Close closes the client
	session *session // nil without a user
}

var (
	_ backends.Watcher      = (*Backend)(nil)
	_ backends.BatchSwapper = (*Backend)(nil)
	_ backends.BatchLoader  = (*Backend)(nil)
	_ backends.Lister       = (*Backend)(nil)
	_ backends.Inspector    = (*Backend)(nil)
)

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Prefix is what keys begin with, before the election's name. The default is
	// DefaultPrefix.
	Prefix string

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend on your own client, which Close leaves open. options may be
// nil. New returns ErrOptions of package backends for a client that it cannot use. It
// sends nothing, whatever ctx is: the first request shows whether the store can be
// used.
//
// Configure the client with DialKeepAliveTime, or a silent network goes
// unnoticed, and with MaxUnaryRetries 1. With more, or by default, it may repeat a
// write, see Consistency: that is harmless, because the elector reads back after a
// conflict, but it costs time. The client reconnects watches by itself, so the elector
// cannot report a lost connection.
func New(ctx context.Context, client *clientv3.Client, options *Options) (*Backend, error) {
	if client == nil {
		return nil, fmt.Errorf("%w of etcd.New: the client is nil; make one with clientv3.New", backends.ErrOptions)
	}
	if options == nil {
		options = &Options{}
	}
	prefix := cmp.Or(options.Prefix, DefaultPrefix)
	hosts := client.Endpoints()
	for i, host := range hosts {
		if _, rest, ok := strings.Cut(host, "://"); ok {
			host = rest
		}
		hosts[i] = host[strings.LastIndex(host, "@")+1:]
	}
	store := &url.URL{Scheme: "etcd", Host: strings.Join(hosts, ","), Path: prefix}
	b := newBackend(store.String(), prefix)
	b.client = client
	b.base.SetReadOnly(options.ReadOnly)
	return b, nil
}

func newBackend(store, prefix string) *Backend {
	b := &Backend{prefix: prefix}
	b.base = backends.NewBase(store, func(err error) (string, error) { return classify(err, prefix, b.base.ReadOnly()) })
	return b
}

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		r, _, err := b.load(ctx, name)
		return r, err
	})
}

// load also returns the store's revision at which it read the record.
func (b *Backend) load(ctx context.Context, name string) (backends.Record, int64, error) {
	answer, err := b.client.Get(ctx, b.prefix+name)
	if err != nil {
		return backends.Record{}, 0, err
	}
	if len(answer.Kvs) == 0 {
		return backends.Record{}, answer.Header.Revision, nil
	}
	r, err := decode(name, answer.Kvs[0].Value)
	return r, answer.Header.Revision, err
}

func decode(name string, value []byte) (backends.Record, error) {
	r, err := backends.Decode(name, value)
	if err != nil {
		return backends.Record{}, err
	}
	r.Version = backends.Version(value)
	return r, nil
}

// List implements [backends.Lister]. It reads the keys under the prefix, in one
// request.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		answer, err := b.client.Get(ctx, b.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		names := make([]string, len(answer.Kvs))
		for i, kv := range answer.Kvs {
			names[i] = strings.TrimPrefix(string(kv.Key), b.prefix)
		}
		return names, nil
	})
}

// Swap implements [backends.Backend]. A transaction that fails reads nothing: the
// elector reads by itself.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		same, put, next := b.change(name, prev, next)
		answer, err := b.client.Txn(ctx).If(same).Then(put).Commit()
		if err == nil && !answer.Succeeded {
			err = backends.ErrConflict
		}
		return next, err
	})
}

// change returns what a transaction compares and does to replace prev, and next
// with its version.
func (b *Backend) change(name string, prev, next backends.Record) (clientv3.Cmp, clientv3.Op, backends.Record) {
	key, value := b.prefix+name, string(backends.Encode(name, next))
	var same clientv3.Cmp
	if prev.Exists() {
		same = clientv3.Compare(clientv3.Value(key), "=", string(prev.Version))
	} else {
		same = clientv3.Compare(clientv3.CreateRevision(key), "=", 0) // does not exist
	}
	next.Version = backends.Version(value)
	return same, clientv3.OpPut(key, value), next
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, MaxSwaps: maxBatch, MaxLoads: maxBatch, PushesRenewals: true, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls and watches under way,
// and closes the client unless that was given to New.
func (b *Backend) Close() error {
	return b.base.Close(func() error {
		if !b.own {
			return nil
		}
		if b.session != nil {
			b.session.tries.Stop()
		}
		return b.client.Close()
	})
}
