package consul

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() {
	backends.Register("consul", open)
	backends.Register("consuls", open)
}

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

// maxCalls bounds the connections for what is not a watch.
const maxCalls = 64

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	transport := &http.Transport{}
	b, err := parse(u, transport)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	configure(transport, life)
	b.idle = transport.CloseIdleConnections
	b.release = func() error { end(); b.idle(); return nil }
	err = b.base.Open(ctx, patience, func(ctx context.Context) error {
		// No election has this key, and who may read the prefix may read it.
		_, _, err := b.get(ctx, b.prefix, url.Values{})
		return err
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// configure makes a transport whose requests have a connection each, which
// HTTP/2 would not give them: one that hangs then takes no others with it.
func configure(t *http.Transport, life context.Context) {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(life, network, address) // net/http does not end it with its request either
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DisableCompression = true
	t.TLSHandshakeTimeout = 5 * time.Second
	t.IdleConnTimeout = 90 * time.Second
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = maxWatches+maxCalls, maxCalls
}

var (
	// Consul takes these bytes of a key in every version.
	plainPart  = regexp.MustCompile(`^[a-zA-Z0-9,_.-]{1,200}$`)
	datacenter = regexp.MustCompile(`^[a-zA-Z0-9_-]*$`)
)

// parse reads a URL. It touches no network, but reads the files of TLS and of the
// token.
func parse(u *url.URL, transport *http.Transport) (*Backend, error) {
	if u.User != nil || storeurl.Misread(u) || strings.Contains(u.RawQuery, "@") {
		return nil, fmt.Errorf("%w: it is not of the form consul://host:8500/prefix (not shown, it may hold a password); it takes no token: name its file with token_file, or set CONSUL_HTTP_TOKEN", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (*Backend, error) {
		return nil, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files, dc, tokenFile := tlsfiles.From(p), p.String("dc", ""), p.String("token_file", os.Getenv("CONSUL_HTTP_TOKEN_FILE"))
	readOnly := p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return nil, err
	}
	if !datacenter.MatchString(dc) {
		return refuse("dc is not the name of a datacenter")
	}
	prefix := DefaultPrefix
	if path := strings.Trim(u.Path, "/"); path != "" {
		prefix = path + "/"
	}
	if wrong := wrongPrefix(prefix); wrong != "" {
		return refuse("its path %s", wrong)
	}
	b := newBackend(backends.Redact(u), prefix)
	b.datacenter = dc
	b.base.SetReadOnly(readOnly)

	scheme := "http"
	if u.Scheme == "consuls" {
		scheme = "https"
		config, err := files.Config(strings.Split(u.Host, ",")...)
		if err != nil {
			return refuse("%w", err)
		}
		transport.TLSClientConfig = config
	} else if files != (tlsfiles.Files{}) {
		return refuse("ca, cert, key and server_name are for TLS; write consuls://")
	}
	hosts, err := storeurl.Hosts(u, "8500")
	if err != nil {
		return refuse("%w", err)
	}
	for _, host := range hosts {
		b.addresses = append(b.addresses, &url.URL{Scheme: scheme, Host: host})
	}
	if b.token, err = tokens(tokenFile); err != nil {
		return refuse("token_file: %w", err)
	}
	b.use(transport)
	return b, nil
}

// wrongPrefix returns why keys cannot begin with the prefix, "" if they can.
func wrongPrefix(prefix string) string {
	for _, part := range strings.Split(strings.TrimSuffix(prefix, "/"), "/") {
		if !plainPart.MatchString(part) || part == "." || strings.Contains(part, "..") {
			return "has a part that is empty, has '..', or has bytes other than ASCII letters, digits and , - _ ."
		}
	}
	return ""
}

// tokens returns a function that returns the token to use now: a file is read
// each time, so that it can be rotated.
func tokens(file string) (func() (string, error), error) {
	if file == "" {
		token := os.Getenv("CONSUL_HTTP_TOKEN")
		return func() (string, error) { return token, nil }, nil
	}
	read := func() (string, error) {
		content, err := os.ReadFile(file)
		return strings.TrimSpace(string(content)), err
	}
	_, err := read()
	return read, err
}
