package stores

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// The kinds of stores that Start knows.
const (
	Etcd     = "etcd"
	Postgres = "postgres"
)

// variables name the environment's addresses of stores, as URLs.
var variables = map[string]string{
	Etcd:     "ELECTOR_TEST_ETCD",
	Postgres: "ELECTOR_TEST_POSTGRES",
}

// A method is one way of getting a store.
type method struct {
	name string
	try  func(ctx context.Context, kind string) (*Store, error)
}

// methods are tried in this order. The place of "docker" is between the two.
var methods = []method{
	{"environment", environment},
	{"local process", local},
}

// Start returns a store of the kind, Etcd or Postgres, that answers. It blocks
// until then, or until ctx ends, which bounds the start and not the life of
// the store: call Stop. The error has the reason of every method tried.
//
// An address in the environment, ELECTOR_TEST_ETCD or ELECTOR_TEST_POSTGRES, is
// an order: if nothing listens there, nothing else is tried.
func Start(ctx context.Context, kind string) (*Store, error) {
	if variables[kind] == "" {
		return nil, fmt.Errorf("unknown kind of store %q; known are %s and %s", kind, Etcd, Postgres)
	}
	var reasons []error
	for _, m := range methods {
		s, err := m.try(ctx, kind)
		if err == nil {
			return s, nil
		}
		reasons = append(reasons, fmt.Errorf("%s: %w", m.name, err))
		if os.Getenv(variables[kind]) != "" || ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("no %s to test with:\n%w", kind, errors.Join(reasons...))
}

// environment takes the store that the caller has named. Whether it lets us
// in is for the adapter's Open to say.
func environment(ctx context.Context, kind string) (*Store, error) {
	variable := variables[kind]
	raw := os.Getenv(variable)
	if raw == "" {
		return nil, fmt.Errorf("%s is not set", variable)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s is not a URL with a host (not shown, it may hold a password); correct or unset it", variable)
	}
	address, _, _ := strings.Cut(u.Host, ",")
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("nothing listens where %s points: %w; start it there or unset the variable", variable, err)
	}
	conn.Close()
	return &Store{Kind: kind, How: "address from " + variable, URL: raw, Address: address}, nil
}

// local starts a program of this machine.
func local(ctx context.Context, kind string) (*Store, error) {
	if kind == Etcd {
		return startEtcd(ctx)
	}
	return startPostgres(ctx)
}
