package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// minTTL leaves a request 150 ms, a sixth of the time that a holder trusts its
// lease.
const minTTL = time.Second

// A Backend keeps each record in one Lease. Open and New make it.
type Backend struct {
	base      *backends.Base
	server    string // URL of the API server
	namespace string
	calls     *http.Client
	watches   *http.Client
	token     func() (string, error) // of each request; nil if the clients have credentials
	closeIdle func()                 // closes the connections that are not in use
	release   func() error           // of what Open made

	connections *connections // that Open's clients have made

	mutex sync.Mutex
	seen  map[string]state // the newest one of each election that was read or written
}

// A state is a Lease with the record that it holds.
type state struct {
	lease  lease
	record backends.Record
}

var (
	_ backends.Watcher   = (*Backend)(nil)
	_ backends.Lister    = (*Backend)(nil)
	_ backends.Inspector = (*Backend)(nil)
)

// Options are the options of New. BaseURL and Namespace are required.
type Options struct {
	// BaseURL is the URL of the API server: with client-go, Host of rest.Config. The
	// default scheme is https.
	BaseURL string

	// Namespace is that of the Leases.
	Namespace string

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend in a namespace, on your client, which has the credentials and
// which Close leaves as it is: with client-go that of rest.HTTPClientFor. It returns
// ErrOptions of package backends for a client or options that it cannot use. New sends
// nothing, whatever ctx is: the first request shows whether the API server can be used.
//
// The client must not repeat requests by itself. A client with a Timeout ends
// watches after that time. Over HTTP/2, client-go's default, one connection that
// has gone dark holds up every call until the transport gives it up.
func New(ctx context.Context, client *http.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of kubernetes.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; make one with rest.HTTPClientFor", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	if options.BaseURL == "" {
		return nil, fmt.Errorf("%w: BaseURL is empty; give the API server's URL, such as Host of rest.Config", errOptions)
	}
	base, namespace := strings.TrimSuffix(options.BaseURL, "/"), options.Namespace
	if !strings.Contains(base, "://") {
		base = "https://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		// Not shown: it may hold a password.
		return nil, fmt.Errorf("%w: BaseURL is not of the form https://host:6443", errOptions)
	}
	if !namespaceName.MatchString(namespace) {
		return nil, fmt.Errorf("%w: Namespace is %q; name the namespace that keeps the Leases", errOptions, namespace)
	}
	b := newBackend("kubernetes://"+u.Host+"/"+namespace, base, namespace)
	once := *client
	once.CheckRedirect = noRedirect
	b.calls, b.watches = &once, &once
	b.base.SetReadOnly(options.ReadOnly)
	return b, nil
}

func newBackend(store, server, namespace string) *Backend {
	b := &Backend{server: server, namespace: namespace, closeIdle: func() {}, seen: map[string]state{}}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// noRedirect makes a client return a redirection instead of sending a write again.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		r, _, err := b.load(ctx, name)
		return r, err
	})
}

// load also returns the resource version of the Lease, or "" if there is none. A
// GET without a resource version is a quorum read.
func (b *Backend) load(ctx context.Context, name string) (backends.Record, string, error) {
	object := objectName(name)
	var l lease
	err := b.call(ctx, http.MethodGet, b.path(object), nil, &l)
	switch {
	case isAbsent(err, object):
		return backends.Record{}, "", nil
	case errors.Is(err, errTooLong):
		return backends.Record{}, "", backends.Foreign("its Lease has more than %d bytes", maxAnswer)
	case err != nil:
		return backends.Record{}, "", err
	}
	r, err := b.read(name, l)
	return r, l.Metadata.ResourceVersion, err
}

// read returns the record in a Lease of the election.
func (b *Backend) read(name string, l lease) (backends.Record, error) {
	m := l.Metadata
	if l.Kind != "Lease" || m.Name != objectName(name) || m.UID == "" || m.ResourceVersion == "" {
		return backends.Record{}, errNoLease
	}
	content, ok := m.Annotations[recordAnnotation]
	if !ok {
		return backends.Record{}, backends.Foreign("Lease %s/%s has no annotation %s: it belongs to another program", b.namespace, m.Name, recordAnnotation)
	}
	r, err := backends.Decode(name, []byte(content))
	if err != nil {
		return backends.Record{}, err
	}
	r.Version = m.version()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	// A watch may bring what was replaced since.
	if seen := b.seen[name].lease.Metadata; seen.UID != m.UID || compare(m.ResourceVersion, seen.ResourceVersion) >= 0 {
		b.seen[name] = state{l, r}
	}
	return r, nil
}

// Swap implements [backends.Backend]. It sends the Lease as it was last read, with
// another record, so that labels and owners that others have added stay.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		object := objectName(name)
		next.Version = ""
		var answer lease
		var err error
		if !prev.Exists() {
			created := state{}.with(name, next)
			err = b.call(ctx, http.MethodPost, b.path(""), created, &answer)
			if isStatus(err, http.StatusConflict, "AlreadyExists", object) {
				err = backends.ErrConflict
			}
		} else {
			old, ok := b.last(name, prev.Version)
			if !ok {
				return next, fmt.Errorf("%w (and the version to replace is not from this store)", backends.ErrConflict)
			}
			err = b.call(ctx, http.MethodPut, b.path(object), old.with(name, next), &answer)
			if isStatus(err, http.StatusConflict, "Conflict", object) || isAbsent(err, object) {
				err = backends.ErrConflict
			}
		}
		if err != nil {
			return next, err
		}
		written, err := b.read(name, answer)
		if errors.Is(err, errNoLease) {
			return next, err
		}
		if next.Version = written.Version; err != nil || written != next {
			return next, errChanged
		}
		return next, nil
	})
}

// last returns the state of the version. One that was not seen through this handle
// has what is compared, and no more.
func (b *Backend) last(name string, v backends.Version) (s state, ok bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if s = b.seen[name]; s.record.Version == v {
		return s, true
	}
	s = state{}
	s.lease.Metadata.UID, s.lease.Metadata.ResourceVersion, ok = parseVersion(v)
	return s, ok
}

// List implements [backends.Lister]. It reads the Leases with the
// label, 100 in a request. It needs the permission to list leases.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) (names []string, _ error) {
		query := url.Values{"labelSelector": {managedBy + "=" + managedByElector}, "limit": {"100"}}
		for {
			var page struct {
				Metadata struct{ Continue string }
				Items    []struct{ Metadata metadata }
			}
			if err := b.call(ctx, http.MethodGet, b.path("")+"?"+query.Encode(), nil, &page); err != nil {
				return nil, err
			}
			for _, item := range page.Items {
				if name := item.Metadata.Annotations[electionAnnotation]; objectName(name) == item.Metadata.Name {
					names = append(names, name)
				}
			}
			if page.Metadata.Continue == "" {
				return names, nil
			}
			query.Set("continue", page.Metadata.Continue)
		}
	})
}

// path returns that of a Lease, or of all of the namespace.
func (b *Backend) path(object string) string {
	path := "/apis/coordination.k8s.io/v1/namespaces/" + b.namespace + "/leases"
	if object != "" {
		path += "/" + object
	}
	return path
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, PushesRenewals: true, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls and watches under way, and
// closes the connections, except those of a client that was given to New.
func (b *Backend) Close() error { return b.base.Close(b.release) }
