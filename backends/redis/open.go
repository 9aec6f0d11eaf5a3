package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/setup"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() {
	backends.Register("redis", open)
	backends.Register("rediss", open)
}

// patience bounds opening when the caller sets no deadline, and what waits for an answer
// without one.
const patience = 10 * time.Second

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Prefix is what keys begin with, before the name of the election. It is the
	// channel for a Watch too. The default is DefaultPrefix.
	Prefix string

	// Durability is what the server must be; Checked by default.
	Durability Durability

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly]. It works
	// on a replica, which may be behind.
	ReadOnly bool
}

// New returns a backend on the server of your client, which Close leaves open. It makes
// connections of its own, with the client's options: at most 8, and one for all Watches. A
// UniversalClient of one server is such a client. options may be nil.
//
// The client's timeouts, retries, pool, limiter and hooks are not used: a request ends
// with its context, and a write is sent once, because the second time one that was applied
// would be refused. Its OnConnect is called before the server is checked. A client of
// NewFailoverClient must have [Lossy], and stay open for as long as the backend.
//
// New blocks until it has checked the server, at most 10 s if ctx has no deadline. It
// returns the errors of a [backends.Opener], and ErrOptions of package backends for a client
// or options that it cannot use.
func New(ctx context.Context, client *goredis.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of redis.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; make one with redis.NewClient of go-redis", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	c := *client.Options()
	switch o := options; {
	case !o.Durability.valid():
		return nil, fmt.Errorf("%w: Durability is %q, not Checked, Stated or Lossy", errOptions, o.Durability)
	case o.Durability != Lossy && c.Addr == failoverAddr:
		return nil, fmt.Errorf("%w: the client is one of NewFailoverClient, and a failover loses acknowledged writes; give a client of one server, or set Durability to Lossy to accept that two processes may lead at once", errOptions)
	case !plainPrefix(o.Prefix):
		return nil, fmt.Errorf("%w: Prefix has a space, a quote or a control character", errOptions)
	}
	scheme := "redis"
	if c.TLSConfig != nil {
		scheme = "rediss"
	}
	c.Limiter = nil // it counts the errors of other requests too
	store := &url.URL{Scheme: scheme, Host: c.Addr, Path: "/" + strconv.Itoa(c.DB)}
	return connect(ctx, &c, &servers{hosts: []string{c.Addr}}, store.String(), *options)
}

// failoverAddr is what the client library has as the address of a client that asks
// Sentinels.
const failoverAddr = "FailoverClient"

func plainPrefix(prefix string) bool {
	return !strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\'' })
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	config, servers, options, err := parse(ctx, u)
	if err != nil {
		return nil, err
	}
	b, err := connect(ctx, config, servers, backends.Redact(u), options)
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
}

func connect(ctx context.Context, c *goredis.Options, servers *servers, store string, o Options) (*Backend, error) {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	b := &Backend{options: o, calls: make(chan struct{}, maxCalls), user: c.Username, servers: servers}
	servers.dial = c.Dialer
	b.base = backends.NewBase(store, b.classify)
	b.base.SetReadOnly(o.ReadOnly)
	b.hub.Listen = b.listen
	before := c.OnConnect
	c.OnConnect = func(ctx context.Context, conn *goredis.Conn) error {
		if b.closed.Load() { // the client library takes no connection back that is made while it is closed
			return goredis.ErrClosed
		}
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return b.settle(ctx, conn)
	}
	c.Dialer = b.servers.connect
	c.Protocol = 2
	c.MaxRetries = -1 // a write that was applied would be refused the second time
	c.ContextTimeoutEnabled = true
	c.DisableIdentity = true // a right less
	c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = 30*time.Second, 30*time.Second, 30*time.Second
	// After as many failures to connect as its size, the pool does not try for a second.
	// maxCalls bounds it.
	c.PoolSize, c.MaxActiveConns, c.MinIdleConns, c.MaxIdleConns = 1024, 0, 0, maxCalls
	c.ConnMaxLifetime = time.Minute // then the server is checked again
	b.client = goredis.NewClient(c)
	b.setup = setup.NewTries(setup.Patience, b.connect)
	if err := b.base.Open(ctx, patience, b.prepare); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// prepare finds a server that serves. Of several it takes the first.
func (b *Backend) prepare(ctx context.Context) (err error) {
	var failed []error
	for range b.servers.hosts {
		if b.options.ReadOnly {
			// No election has this key, and a user who may read the prefix may read it.
			_, err = call(ctx, b, func() (string, error) { return b.client.Get(ctx, b.options.Prefix).Result() })
		} else {
			_, err = b.write(ctx, nil)
		}
		if err == nil || errors.Is(err, goredis.Nil) {
			return nil
		}
		failed = append(failed, err)
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return oneLine{errors.Join(failed...)}
}

// oneLine shows joined errors, one for each server, on one line of a log.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }

// servers are those of which one is the primary.
type servers struct {
	hosts   []string
	current atomic.Uint32                             // modulo their number
	tls     func(address string) (*tls.Config, error) // nil for none
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// next makes the next connection one to another server.
func (s *servers) next() { s.current.Add(1) }

// connect is the client library's Dialer.
func (s *servers) connect(ctx context.Context, network, _ string) (net.Conn, error) {
	address := s.hosts[int(s.current.Load())%len(s.hosts)]
	conn, err := s.to(ctx, network, address)
	if err != nil {
		s.next()
		return nil, err
	}
	if t, ok := ctx.Value(tied{}).(*tie); ok {
		t.close(conn)
	}
	return conn, nil
}

func (s *servers) to(ctx context.Context, network, address string) (net.Conn, error) {
	if s.dial != nil {
		return within(ctx, func() (net.Conn, error) { return s.dial(ctx, network, address) })
	}
	dialer := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	if s.tls == nil {
		return dialer.DialContext(ctx, network, address)
	}
	config, err := s.tls(address)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(ctx, network, address)
}

// within returns when ctx ends, as the client library's own Dialer does not while it sets
// up TLS. A connection that is made after that is closed.
func within(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	dialed := make(chan result, 1)
	go func() {
		conn, err := dial()
		dialed <- result{conn, err}
	}()
	select {
	case r := <-dialed:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// parse reads a URL. It touches no network, but reads the files of TLS and of the password.
func parse(ctx context.Context, u *url.URL) (config *goredis.Options, to *servers, o Options, err error) {
	if storeurl.Misread(u) {
		return nil, nil, o, fmt.Errorf("%w: it is not of the form redis://user:password@host:6379/0 (not shown, it may hold a password); percent-encode special characters, such as @ # ? /, in user, password and parameters", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (*goredis.Options, *servers, Options, error) {
		return nil, nil, o, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files, passwordFile := tlsfiles.From(p), p.String("password_file", "")
	o = Options{Prefix: p.String("prefix", DefaultPrefix), Durability: Durability(p.String("durability", "")), ReadOnly: p.Bool("readonly", false)}
	if err := p.Done(); err != nil {
		return nil, nil, o, err
	}
	switch {
	case !o.Durability.valid():
		return refuse("durability is stated or lossy")
	case !plainPrefix(o.Prefix):
		return refuse("its prefix has a space, a quote or a control character")
	case u.Scheme == "redis" && files != (tlsfiles.Files{}):
		return refuse("ca, cert, key and server_name are for TLS; write rediss://")
	}
	login, err := storeurl.LoginOf(ctx, u, passwordFile)
	if err != nil {
		return refuse("%w", err)
	}
	config = &goredis.Options{Username: u.User.Username()}
	if _, password, err := login(); err == nil && config.Username != "" && password == "" {
		return refuse("a user needs a password; write redis://:password@host for the default user")
	}
	config.CredentialsProviderContext = func(context.Context) (string, string, error) { return login() }
	if path := strings.Trim(u.Path, "/"); path != "" {
		if config.DB, err = strconv.Atoi(path); err != nil || config.DB < 0 {
			return refuse("its path is not the number of a database")
		}
	}
	to = &servers{}
	if to.hosts, err = storeurl.Hosts(u, "6379"); err != nil {
		return refuse("%w", err)
	}
	if len(to.hosts) > 1 && o.Durability != Lossy {
		return refuse("it names %d servers, and a failover from one to another loses acknowledged writes; name one%s", len(to.hosts), orLossy)
	}
	if u.Scheme == "rediss" {
		if err := files.Check(); err != nil {
			return refuse("%w", err)
		}
		to.tls = files.For
	}
	return config, to, o, nil
}
