package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector/backends"
)

func init() {
	backends.Register("etcd", open)
	backends.Register("etcds", open)
}

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	config, prefix, err := parse(u)
	if err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	// The client lives on when ctx has ended, but must not begin after it: with
	// a user it signs in before New returns.
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	defer stop()
	config.Context = life
	b := &Backend{prefix: prefix, store: backends.Redact(u), life: life}
	doing := "opening " + b.store
	if b.client, err = clientv3.New(config); err != nil {
		err = b.explain(ctx, doing, err)
		end()
		return nil, err
	}
	b.close = sync.OnceValue(func() error {
		end()
		return b.client.Close()
	})
	// No election has this key, and whoever may read the prefix may read it.
	_, err = b.client.Get(ctx, prefix, clientv3.WithKeysOnly())
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		err = b.explain(ctx, doing, err)
		b.Close()
		return nil, err
	}
	return b, nil
}

// parse reads a URL. It touches no network, but reads the files of TLS.
func parse(u *url.URL) (config clientv3.Config, prefix string, err error) {
	if misread(u) {
		return config, "", fmt.Errorf("%w: it is not of the form etcd://user:password@host:2379/prefix (not shown, it may hold a password); percent-encode special characters, @ # ? / say, in user and password", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (clientv3.Config, string, error) {
		return clientv3.Config{}, "", fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files := tlsFiles{ca: p.String("ca", ""), cert: p.String("cert", ""), key: p.String("key", ""), serverName: p.String("server_name", "")}
	if err := p.Done(); err != nil {
		return config, "", err
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
		if config.TLS, err = files.config(); err != nil {
			return refuse("%w", err)
		}
	} else if files != (tlsFiles{}) {
		return refuse("ca, cert, key and server_name are for TLS; write etcds://")
	}
	for _, host := range strings.Split(u.Host, ",") {
		if host == "" {
			return refuse("it names no host, or an empty one; write etcd://host:2379/prefix")
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host += ":2379"
		}
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			return refuse("a host is not of the form host:port, or [address]:port for IPv6")
		}
		config.Endpoints = append(config.Endpoints, transport+host)
	}

	if prefix = strings.TrimSuffix(u.Path, "/") + "/"; prefix == "/" {
		prefix = DefaultPrefix
	}
	return config, prefix, nil
}

// misread tells of URLs in which a part of a password with special characters
// was read as something else, and would be shown.
func misread(u *url.URL) bool {
	return u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || u.User == nil && strings.Contains(u.RawQuery, "@")
}

type tlsFiles struct{ ca, cert, key, serverName string }

func (f tlsFiles) config() (*tls.Config, error) {
	config := &tls.Config{ServerName: f.serverName}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("parameter ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("parameter ca: %s has no PEM certificate", f.ca)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, fmt.Errorf("parameters cert and key go together")
	}
	if f.cert != "" {
		read := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.cert, f.key)
			return &pair, err
		}
		if _, err := read(); err != nil {
			return nil, fmt.Errorf("parameters cert and key: %w", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	}
	return config, nil
}
