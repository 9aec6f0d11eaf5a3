package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() { backends.Register("kubernetes", open) }

// patience bounds opening, and the beginning of a watch, when the caller set no
// deadline.
const patience = 10 * time.Second

// maxConnections bounds the calls of one handle that are under way.
const maxConnections = 32

// serviceAccount is the folder where a pod has its token, CA and namespace.
var serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// A config is the meaning of a URL.
type config struct {
	store     string // its name in errors
	base      string
	namespace string
	tls       *tls.Config // nil for http
	tokenFile string
	readOnly  bool
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	c, err := parse(u)
	if err != nil {
		return nil, err
	}
	b := newBackend(c.store, c.base, c.namespace)
	b.token = c.token
	b.base.SetReadOnly(c.readOnly)
	life, end := context.WithCancel(context.Background())
	b.connections = newConnections(life)
	calls, watches := c.transport(b.connections), c.transport(b.connections)
	// A connection of HTTP/1.1 that hangs holds up one call only.
	calls.Protocols.SetHTTP1(true)
	calls.MaxConnsPerHost, calls.MaxIdleConnsPerHost = maxConnections, maxConnections
	// Watches share one connection of HTTP/2, and are few enough to begin again.
	watches.Protocols.SetHTTP1(true)
	watches.Protocols.SetHTTP2(true)
	watches.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 3 * time.Second}
	b.calls, b.watches = &http.Client{Transport: calls, CheckRedirect: noRedirect}, &http.Client{Transport: watches, CheckRedirect: noRedirect}
	b.closeIdle = calls.CloseIdleConnections
	b.release = func() error {
		end()
		calls.CloseIdleConnections()
		watches.CloseIdleConnections()
		b.connections.close()
		return nil
	}
	if err := b.base.Open(ctx, patience, b.check); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (c config) transport(all *connections) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         all.dial,
		TLSClientConfig:     c.tls.Clone(),
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		Protocols:           new(http.Protocols),
	}
}

// token reads the token again for each request: the kubelet replaces that of a pod
// every hour.
func (c config) token() (string, error) {
	if c.tokenFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(c.tokenFile)
	token := strings.TrimSpace(string(content))
	if err == nil && (token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })) {
		err = fmt.Errorf("%s holds no token", c.tokenFile)
	}
	return token, err
}

// check makes sure that an API server with Leases answers and accepts the
// credentials, and that these have a right to some Lease of the namespace. Which
// one is not known yet.
func (b *Backend) check(ctx context.Context) error {
	if b.base.ReadOnly() {
		return b.checkReading(ctx)
	}
	var group struct{ Kind, GroupVersion string }
	if err := b.call(ctx, http.MethodGet, "/apis/coordination.k8s.io/v1", nil, &group); err != nil {
		return err
	}
	if group.Kind != "APIResourceList" || group.GroupVersion != "coordination.k8s.io/v1" {
		return errNoLease
	}
	return b.mayGet(ctx)
}

// mayGet returns errNoRights if the account surely has no right to get a Lease.
func (b *Backend) mayGet(ctx context.Context) error {
	held, complete, err := b.rights(ctx)
	if err == nil && complete && !held["get"] {
		err = errNoRights
	}
	return err
}

// checkReading makes sure that an API server with Leases answers, and that the account
// may read some. One that may only get the Leases that its role names cannot list: then
// its rights tell.
func (b *Backend) checkReading(ctx context.Context) error {
	var page struct {
		Kind  string
		Items []struct{}
	}
	err := b.call(ctx, http.MethodGet, b.path("")+"?limit=1", nil, &page)
	s := &status{}
	switch {
	case errors.As(err, &s) && s.Kind == "Status" && s.Code == http.StatusForbidden && !s.starting:
		return b.mayGet(ctx)
	case err != nil:
		return err
	case page.Kind != "LeaseList":
		return errNoLease
	case len(page.Items) == 0:
		return b.checkNamespace(ctx)
	}
	return nil
}

// checkNamespace returns the API server's answer that there is no such namespace, which
// it gives to those who may get that. Its Leases are only none.
func (b *Backend) checkNamespace(ctx context.Context) error {
	err := b.call(ctx, http.MethodGet, "/api/v1/namespaces/"+b.namespace, nil, &struct{}{})
	if s := (*status)(nil); errors.As(err, &s) && !s.noNamespace() {
		return nil
	}
	return err
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// parse reads a URL. It touches no network, but reads the files that it names.
func parse(u *url.URL) (config, error) {
	if u.User != nil || storeurl.Misread(u) {
		return config{}, fmt.Errorf("%w: it is not of the form kubernetes://host:port/namespace (not shown, it may hold a password); a token goes into the file that token_file names", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (config, error) {
		return config{}, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	files := tlsfiles.From(p)
	c := config{tokenFile: p.String("token_file", "")}
	encrypted := p.Bool("tls", true)
	c.readOnly = p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return config{}, err
	}
	c.namespace = strings.Trim(u.Path, "/")
	host := u.Host
	if host == "" {
		if host = inCluster(); host == "" {
			return refuse("it names no API server, and this process does not run in a pod; write kubernetes://host:6443/namespace?ca=FILE&token_file=FILE, or run kubectl proxy and write kubernetes://127.0.0.1:8001/namespace?tls=false")
		}
		if c.tokenFile == "" && files.Cert == "" && encrypted {
			c.tokenFile = filepath.Join(serviceAccount, "token")
		}
		if files.CA == "" && encrypted {
			files.CA = filepath.Join(serviceAccount, "ca.crt")
		}
		if c.namespace == "" {
			content, err := os.ReadFile(filepath.Join(serviceAccount, "namespace"))
			if err != nil {
				return refuse("it names no namespace, and that of the pod cannot be read: %w", err)
			}
			c.namespace = strings.TrimSpace(string(content))
		}
	}
	if !namespaceName.MatchString(c.namespace) {
		return refuse("its path is not a namespace; write kubernetes://host:port/namespace, or kubernetes:///namespace in a pod")
	}
	c.store = "kubernetes://" + u.Host + "/" + c.namespace
	if !encrypted {
		if files != (tlsfiles.Files{}) || c.tokenFile != "" {
			return refuse("ca, cert, key, server_name and token_file need TLS; leave out tls=false")
		}
		c.base = "http://"
	} else {
		var err error
		if c.tls, err = files.Config(host); err != nil {
			return refuse("%w", err)
		}
		c.base = "https://"
	}
	hosts, err := storeurl.Hosts(&url.URL{Scheme: "kubernetes", Host: host}, map[bool]string{true: "443", false: "80"}[encrypted])
	if err == nil && len(hosts) != 1 {
		err = errors.New("name one API server; for several, name their load balancer")
	}
	if err != nil {
		return refuse("%w", err)
	}
	c.base += hosts[0]
	if _, err := c.token(); err != nil {
		return refuse("parameter token_file: %w", err)
	}
	return c, nil
}

// inCluster returns the address of the API server, as a pod has it, or "".
func inCluster() string {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}
