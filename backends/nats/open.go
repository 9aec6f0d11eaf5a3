package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() {
	backends.Register("nats", open)
	backends.Register("natss", open)
}

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	b, options, own, err := parse(ctx, u)
	if err != nil {
		return nil, err
	}
	b.owned = true
	life, end := context.WithCancel(context.Background())
	dial := &dialer{life: life}
	options.CustomDialer = dial
	options.AsyncErrorCB = func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { b.told(err) }
	options.DisconnectedErrCB = func(*natsgo.Conn, error) { b.disconnected() }
	options.ReconnectedCB = func(*natsgo.Conn) { b.refusal.Store(nil) }
	b.release = func() error {
		end()
		if nc, ok := b.nc.(*natsgo.Conn); ok {
			nc.Close()
		}
		b.aside.Wait()
		return nil
	}
	err = b.base.Open(ctx, patience, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, end) // or a connection would be made after it
		nc, err := backends.WithContext(ctx, b.base, func() (*natsgo.Conn, error) {
			nc, err := options.Connect()
			if err == nil {
				context.AfterFunc(life, nc.Close) // also if it comes too late
			}
			return nc, err
		})
		if err != nil {
			stop()
			return dial.reason(err)
		}
		b.nc = nc
		if err = b.prepare(ctx, own); !stop() && err == nil {
			err = ctx.Err() // and with it the connection
		}
		return err
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// told notes what the server has sent beside the answers to requests.
func (b *Backend) told(err error) {
	d := denied(err)
	switch {
	case unauthorized(err):
		if unread := b.unread.Load(); unread != nil {
			err = fmt.Errorf("%w: %w", err, *unread)
		}
		b.refusal.Store(&err)
	case d == nil:
	case d.operation == "publish":
		b.under.end(func(subject string) bool { return subject == d.subject }, d)
	default: // no answer can be received
		b.noInbox.Store(d)
		b.under.end(func(string) bool { return true }, d)
	}
}

// disconnected ends the watches: what the server sends until the next connection is
// lost. It forgets why the server ended the connection, as when credentials expire: those
// in the file may be new, and a server that refuses them too tells it again.
func (b *Backend) disconnected() {
	b.refusal.Store(nil)
	b.noInbox.Store(nil)
	b.under.end(func(subject string) bool { return subject == watching }, errDisconnected)
}

// A dialer makes connections that end with its life.
type dialer struct {
	life  context.Context
	mutex sync.Mutex
	last  error // of a connection that could not be made
}

// Dial implements [natsgo.CustomDialer].
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext(d.life, network, address)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.last = err; err != nil {
		return nil, err
	}
	return &socket{c, context.AfterFunc(d.life, func() { c.Close() })}, nil
}

// reason adds why no connection could be made, which the library leaves out.
func (d *dialer) reason(err error) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.last != nil && errors.Is(err, natsgo.ErrNoServers) {
		return fmt.Errorf("%w: %w", err, d.last)
	}
	return err
}

type socket struct {
	net.Conn
	forget func() bool
}

func (s *socket) Close() error {
	s.forget()
	return s.Conn.Close()
}

var plainInbox = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,100}(\.[a-zA-Z0-9_-]{1,100}){0,9}$`)

// parse reads a URL. It touches no network, but reads the files of TLS and of
// credentials.
func parse(ctx context.Context, u *url.URL) (b *Backend, options natsgo.Options, own Options, err error) {
	if storeurl.Misread(u) || strings.Contains(u.RawQuery, "@") {
		return nil, options, own, fmt.Errorf("%w: it is not of the form nats://user:password@host:4222/bucket (not shown, it may hold a password); percent-encode special characters such as @ # ? / in user and password", backends.ErrURL)
	}
	p := backends.NewParameters(u)
	files, passwordFile := tlsfiles.From(p), p.String("password_file", "")
	password, _ := u.User.Password()
	if u.User != nil && (u.User.Username() == "" || password == "" && passwordFile == "") {
		return nil, options, own, fmt.Errorf("%w: user and password go together (not shown, it may be a token); name a file with a token by token_file, with an NKey's seed by nkey, with credentials by creds, or with the user's password by password_file", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (*Backend, natsgo.Options, Options, error) {
		return nil, natsgo.Options{}, Options{}, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	prefix, inbox := p.String("prefix", DefaultPrefix), p.String("inbox", "_INBOX")
	creds, nkey, tokenFile := p.String("creds", ""), p.String("nkey", ""), p.String("token_file", "")
	first, readOnly, copies := p.Bool("tls_first", false), p.Bool("readonly", false), p.String("replicas", "")
	own.Create = p.Bool("create", false)
	if err := p.Done(); err != nil {
		return nil, options, own, err
	}
	bucket := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")
	if err := checkPlace(bucket, prefix); err != nil {
		return refuse("%w", err)
	}
	if !plainInbox.MatchString(inbox) {
		return refuse("inbox has ASCII letters, digits, '-' and '_', in parts that a '.' divides")
	}
	if copies != "" {
		if own.Replicas, err = strconv.Atoi(copies); err != nil || own.Replicas < 1 || own.Replicas > 5 {
			return refuse("replicas is a number from 1 to 5")
		}
	}
	options = natsgo.GetDefaultOptions()
	options.Name = "elector"
	options.InboxPrefix = inbox
	options.MaxReconnect = -1
	options.ReconnectWait, options.ReconnectJitter, options.ReconnectJitterTLS = 250*time.Millisecond, 250*time.Millisecond, 250*time.Millisecond
	options.ReconnectBufSize = -1 // writes are not kept until there is a connection again
	options.PingInterval, options.MaxPingsOut = 2*time.Second, 2
	options.Timeout, options.FlusherTimeout = 5*time.Second, 5*time.Second
	options.IgnoreAuthErrorAbort = true // credentials may be rotated
	options.SkipHostLookup = true       // the dialer does it, within its time

	scheme := "nats://"
	if u.Scheme == "natss" {
		scheme = "tls://"
		options.Secure, options.TLSHandshakeFirst = true, first
		if err := files.Check(); err != nil {
			return refuse("%w", err)
		}
		options.TLSConfig = &tls.Config{ServerName: files.ServerName}
		if files.CA != "" {
			options.RootCAsCB = files.Authorities
		}
		if files.Cert != "" {
			options.TLSCertCB = func() (tls.Certificate, error) {
				c, err := files.Certificate()
				if err != nil {
					return tls.Certificate{}, err
				}
				return *c, nil
			}
		}
	} else if files != (tlsfiles.Files{}) || first {
		return refuse("ca, cert, key, server_name and tls_first are for TLS; write natss://")
	}
	hosts, err := storeurl.Hosts(u, "4222")
	if err != nil {
		return refuse("%w", err)
	}
	for _, host := range hosts {
		options.Servers = append(options.Servers, scheme+host)
	}
	b = newBackend(backends.Redact(u), bucket, prefix)
	b.base.SetReadOnly(readOnly)
	if u.User != nil || passwordFile != "" {
		login, err := storeurl.LoginOf(ctx, u, passwordFile)
		if err != nil {
			return refuse("%w", err)
		}
		options.UserInfo = func() (string, string) {
			user, password, err := login()
			b.read(err)
			return user, password
		}
	}
	if err := b.authenticate(&options, creds, nkey, tokenFile); err != nil {
		return refuse("%w", err)
	}
	return b, options, own, nil
}

// read notes why credentials could not be read, if so. The library connects without them
// then, and the server refuses that.
func (b *Backend) read(err error) {
	if err == nil {
		b.unread.Store(nil)
	} else {
		b.unread.Store(&err)
	}
}

// authenticate reads the files of credentials. All but the public part of an NKey is
// read again for each connection, so that it can be rotated.
func (b *Backend) authenticate(options *natsgo.Options, creds, nkey, tokenFile string) error {
	given := options.UserInfo != nil
	for _, file := range []string{creds, nkey, tokenFile} {
		if file == "" {
			continue
		}
		if given {
			return errors.New("user and password, creds, nkey and token_file exclude each other")
		}
		given = true
		if _, err := os.ReadFile(file); err != nil {
			var named *os.PathError
			if errors.As(err, &named) { // the name may be a secret that was written in its place
				err = named.Err
			}
			return fmt.Errorf("parameter creds, nkey or token_file: its file cannot be read: %w", err)
		}
	}
	switch {
	case creds != "":
		if _, err := natsgo.NkeyOptionFromSeed(creds); err != nil {
			return errors.New("parameter creds: the file has no user's seed; it is what nsc generate creds writes, a JWT and its seed")
		}
		return natsgo.UserCredentials(creds)(options)
	case nkey != "":
		use, err := natsgo.NkeyOptionFromSeed(nkey)
		if err != nil {
			return errors.New("parameter nkey: the file has no NKey's seed") // and its content is secret
		}
		return use(options)
	case tokenFile != "":
		return natsgo.TokenHandler(func() string {
			content, err := os.ReadFile(tokenFile)
			b.read(err)
			return strings.TrimSpace(string(content))
		})(options)
	}
	return nil
}
