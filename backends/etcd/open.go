package etcd

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

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
	config, prefix, readOnly, err := parse(u)
	if err != nil {
		return nil, err
	}
	// The client lives on when ctx has ended, but must not begin after it: with
	// a user it signs in before New returns.
	life, end := context.WithCancel(context.Background())
	config.Context = life
	b := newBackend(backends.Redact(u), prefix)
	b.own = true
	b.base.SetReadOnly(readOnly)
	err = b.base.Open(ctx, patience, func(ctx context.Context) (err error) {
		stop := context.AfterFunc(ctx, end)
		if b.client, err = clientv3.New(config); err != nil {
			return err
		}
		if readOnly {
			// No election has this key, and a user who may read the prefix may read it.
			_, err = b.client.Get(ctx, prefix, clientv3.WithKeysOnly())
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

// parse reads a URL. It touches no network, but reads the files of TLS.
func parse(u *url.URL) (config clientv3.Config, prefix string, readOnly bool, err error) {
	if storeurl.Misread(u) {
		return config, "", false, fmt.Errorf("%w: it is not of the form etcd://user:password@host:2379/prefix (not shown, it may hold a password); percent-encode special characters such as @ # ? / in user and password", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (clientv3.Config, string, bool, error) {
		return clientv3.Config{}, "", false, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files := tlsfiles.From(p)
	readOnly = p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return config, "", false, err
	}
	config = clientv3.Config{
		Logger:               zap.NewNop(), // by default it writes to standard error
		MaxUnaryRetries:      3,            // of what was refused: see once
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          dialOptions(),
	}

	if u.User != nil {
		config.Username = u.User.Username()
		config.Password, _ = u.User.Password()
		if config.Username == "" || config.Password == "" {
			return refuse("user and password go together; a client certificate needs neither")
		}
	}

	transport := "http://"
	if u.Scheme == "etcds" {
		transport = "https://"
		if config.TLS, err = files.Config(strings.Split(u.Host, ",")...); err != nil {
			return refuse("%w", err)
		}
	} else if files != (tlsfiles.Files{}) {
		return refuse("ca, cert, key and server_name are for TLS; write etcds://")
	}
	hosts, err := storeurl.Hosts(u, "2379")
	if err != nil {
		return refuse("%w", err)
	}
	for _, host := range hosts {
		config.Endpoints = append(config.Endpoints, transport+host)
	}

	if prefix = strings.TrimSuffix(u.Path, "/") + "/"; prefix == "/" {
		prefix = DefaultPrefix
	}
	return config, prefix, readOnly, nil
}
