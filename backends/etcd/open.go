package etcd

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() {
	backends.Register("etcd", open)
	backends.Register("etcds", open)
}

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	o, err := parse(ctx, u)
	if err != nil {
		return nil, err
	}
	// The client lives on when ctx has ended, but must not begin after it.
	life, end := context.WithCancel(context.Background())
	o.client.Context = life
	b := newBackend(backends.Redact(u), o.prefix)
	b.own = true
	if o.login != nil {
		b.session = newSession(o.login)
		o.client.DialOptions = append(b.session.dialOptions(), o.client.DialOptions...)
	}
	b.base.SetReadOnly(o.readOnly)
	err = b.base.Open(ctx, patience, func(ctx context.Context) (err error) {
		stop := context.AfterFunc(ctx, end)
		if b.client, err = clientv3.New(o.client); err != nil {
			return err
		}
		if o.readOnly {
			// No election has this key, and a user who may read the prefix may read it.
			_, err = b.client.Get(ctx, o.prefix, clientv3.WithKeysOnly())
		} else {
			err = b.probe(ctx)
		}
		if !stop() && err == nil {
			err = ctx.Err()
		}
		return err
	})
	if err != nil {
		end()
		if b.client != nil {
			b.Close()
		}
		return nil, err
	}
	return b, nil
}

// settings are what a URL says.
type settings struct {
	client   clientv3.Config
	login    storeurl.Login // nil without a user
	prefix   string
	readOnly bool
}

// parse reads a URL. It touches no network, but reads the files that it names.
func parse(ctx context.Context, u *url.URL) (o settings, err error) {
	if storeurl.Misread(u) {
		return o, fmt.Errorf("%w: it is not of the form etcd://user:password@host:2379/prefix (not shown, it may hold a password); percent-encode special characters such as @ # ? / in user and password", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (settings, error) {
		return settings{}, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files, passwordFile := tlsfiles.From(p), p.String("password_file", "")
	o.readOnly = p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return o, err
	}
	o.client = clientv3.Config{
		Logger:               zap.NewNop(), // by default it writes to standard error
		MaxUnaryRetries:      3,            // of what was refused: see once
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          dialOptions(),
	}

	if u.User != nil || passwordFile != "" {
		if o.login, err = storeurl.LoginOf(ctx, u, passwordFile); err != nil {
			return refuse("%w", err)
		}
		if user, password, err := o.login(); err == nil && (user == "" || password == "") {
			return refuse("user and password go together; a client certificate needs neither")
		}
	}

	transport := "http://"
	if u.Scheme == "etcds" {
		transport = "https://"
		if o.client.TLS, err = files.For(""); err != nil { // the library wants one
			return refuse("%w", err)
		}
		o.client.DialOptions = append(o.client.DialOptions, grpc.WithTransportCredentials(secure{credentials.NewTLS(o.client.TLS), files}))
	} else if files != (tlsfiles.Files{}) {
		return refuse("ca, cert, key and server_name are for TLS; write etcds://")
	}
	hosts, err := storeurl.Hosts(u, "2379")
	if err != nil {
		return refuse("%w", err)
	}
	for _, host := range hosts {
		o.client.Endpoints = append(o.client.Endpoints, transport+host)
	}

	if o.prefix = strings.TrimSuffix(u.Path, "/") + "/"; o.prefix == "/" {
		o.prefix = DefaultPrefix
	}
	return o, nil
}
