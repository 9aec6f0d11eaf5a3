package consul

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// DefaultPrefix is the prefix of keys if none is given.
const DefaultPrefix = "elector/"

// minTTL leaves a request 75 ms, a sixth of the time for which a holder trusts its
// lease.
const minTTL = 500 * time.Millisecond

// A Backend keeps each record in one key. Open and New make it.
type Backend struct {
	base       *backends.Base
	client     *http.Client
	addresses  []*url.URL    // of agents or servers: scheme and host
	current    atomic.Uint32 // of the addresses, modulo their number
	prefix     string
	datacenter string
	token      func() (string, error)
	watches    atomic.Int32 // under way
	idle       func()       // closes the connections that are not in use
	release    func() error // of what Open made
}

var (
	_ backends.Watcher      = (*Backend)(nil)
	_ backends.BatchSwapper = (*Backend)(nil)
	_ backends.Lister       = (*Backend)(nil)
	_ backends.Inspector    = (*Backend)(nil)
)

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Address is the URL of the agent or server. The default is
	// "http://127.0.0.1:8500", the agent on the same machine.
	Address string

	// Prefix is what keys begin with, before the name of the election. The
	// default is DefaultPrefix.
	Prefix string

	// Token is an ACL token. The default is none.
	Token string

	// Datacenter is the one that keeps the records. The default is the agent's
	// own.
	Datacenter string

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly]. Its
	// token needs to read the prefix.
	ReadOnly bool
}

// New returns a backend that uses the transport of your client, which Close leaves
// open, and nothing else of the client: a call takes as long as its context allows,
// and redirects are not followed. options may be nil. New returns ErrOptions of
// package backends for a client or options that it cannot use. It sends nothing,
// whatever ctx is: the first request shows whether the store can be used.
//
// The transport must not repeat requests by itself, must not limit the time of a
// blocking query, and should not use HTTP/2, where one dead connection blocks all
// requests. A limit of its connections to a host must leave room for 100 watches.
func New(ctx context.Context, client *http.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of consul.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; give an http.Client", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	at, err := url.Parse(cmp.Or(options.Address, "http://127.0.0.1:8500"))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path, "/") != "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		// Not shown: it may hold a password.
		return nil, fmt.Errorf("%w: Address is not of the form http://host:8500 or https://host:8501", errOptions)
	}
	prefix := cmp.Or(options.Prefix, DefaultPrefix)
	if wrong := wrongPrefix(prefix); wrong != "" {
		return nil, fmt.Errorf("%w: Prefix %s", errOptions, wrong)
	}
	if !datacenter.MatchString(options.Datacenter) {
		return nil, fmt.Errorf("%w: Datacenter is not the name of a datacenter", errOptions)
	}
	scheme := "consul"
	if at.Scheme == "https" {
		scheme = "consuls"
	}
	b := newBackend((&url.URL{Scheme: scheme, Host: at.Host, Path: "/" + prefix}).String(), prefix)
	b.use(client.Transport)
	b.addresses = []*url.URL{{Scheme: at.Scheme, Host: at.Host}}
	b.datacenter = options.Datacenter
	b.base.SetReadOnly(options.ReadOnly)
	token := options.Token
	b.token = func() (string, error) { return token, nil }
	return b, nil
}

func newBackend(store, prefix string) *Backend {
	b := &Backend{prefix: prefix, idle: func() {}}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// use sets the transport. A redirect is no answer of Consul, and would send a
// write twice.
func (b *Backend) use(transport http.RoundTripper) {
	b.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		r, _, err := b.read(ctx, name, url.Values{})
		return r, err
	})
}

// read also returns the index with which a blocking query waits for the next
// change. The query has what it adds to the request.
func (b *Backend) read(ctx context.Context, name string, query url.Values) (backends.Record, uint64, error) {
	p, index, err := b.get(ctx, b.prefix+name, query)
	if err != nil || p == nil {
		return backends.Record{}, index, err
	}
	r, err := backends.Decode(name, p.Value)
	if err != nil {
		return backends.Record{}, index, err
	}
	r.Version = version(p.ModifyIndex)
	return r, index, nil
}

func version(index uint64) backends.Version {
	return backends.Version(strconv.FormatUint(index, 10))
}

// Swap implements [backends.Backend]. It is one transaction.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		operations, err := b.operations(name, prev, next)
		if err != nil {
			return next, err
		}
		results, err := b.transact(ctx, operations, maxAnswer)
		if err != nil {
			return next, swapError(err)
		}
		next.Version, err = written(results, b.prefix+name)
		return next, err
	})
}

// renews reports whether a change leaves the acquisition as it is.
func renews(prev, next backends.Record) bool {
	return !next.Vacant() && !prev.Vacant() && next.Attempt.Nonce == prev.Attempt.Nonce
}

// operations replace the content of a record's key if that has the version of prev, and
// its guard, unless they renew. Index 0 means that the key must not exist.
func (b *Backend) operations(name string, prev, next backends.Record) ([]Operation, error) {
	o := Operation{Verb: "cas", Key: b.prefix + name, Value: backends.Encode(name, next)}
	if prev.Exists() {
		var err error
		if o.Index, err = strconv.ParseUint(string(prev.Version), 10, 64); err != nil || o.Index == 0 {
			return nil, fmt.Errorf("%w (and the version to replace is not from Consul)", backends.ErrConflict)
		}
	}
	if renews(prev, next) {
		return []Operation{o}, nil
	}
	return append([]Operation{o}, b.succession(name, next)...), nil
}

// written returns the version that a transaction gave to a key.
func written(results []Pair, key string) (backends.Version, error) {
	for _, p := range results {
		if p.Key == key && p.ModifyIndex > 0 {
			return version(p.ModifyIndex), nil
		}
	}
	return "", errNotConsul
}

// List implements [backends.Lister]. It reads the keys under the prefix, in one
// request.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		keys, err := b.keys(ctx)
		for i, key := range keys {
			keys[i] = strings.TrimPrefix(key, b.prefix) // a guard's folder ends with a slash, as no name does
		}
		return keys, err
	})
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, MaxSwaps: maxBatch, PushesRenewals: true, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls and watches under way, and
// closes the connections unless the client was given to New.
func (b *Backend) Close() error { return b.base.Close(b.release) }
