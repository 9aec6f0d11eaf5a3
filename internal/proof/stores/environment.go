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

// environment takes the store that the caller has named. Whether it lets us
// in is for the adapter's Open to say.
func environment(ctx context.Context, kind string) (*Store, error) {
	variable := variables[kind]
	raw := os.Getenv(variable)
	if raw == "" {
		return nil, fmt.Errorf("%s is not set", variable)
	}
	address, err := addressIn(kind, raw)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w (not shown, it may hold a password); correct or unset it", variable, err)
	}
	how := "address from " + variable
	if address == "" { // the cloud's
		return &Store{Kind: kind, How: how, URL: raw, Address: kind}, nil
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("nothing listens where %s points: %w; start it there or unset the variable", variable, err)
	}
	conn.Close()
	return &Store{Kind: kind, How: how, URL: raw, Address: address}, nil
}

// ports are where stores listen whose URL names no port.
var ports = map[string]string{Etcd: "2379", Postgres: "5432", ZooKeeper: "2181", Consul: "8500", Kubernetes: "443", MySQL: "3306", NATS: "4222", Redis: "6379"}

// addressIn returns the host and port that a store's URL points to, of several
// the first. It is empty where the URL names a cloud's table or bucket without
// an endpoint. An error has nothing of the URL.
func addressIn(kind, raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", errors.New("it is not a URL with a host")
	}
	port := ports[kind]
	if kind == DynamoDB || kind == GCS || kind == AzureBlob || kind == S3 {
		endpoint := u.Query().Get("endpoint")
		if endpoint == "" {
			return "", nil
		}
		if u, err = url.Parse(endpoint); err != nil || u.Host == "" {
			return "", errors.New("its endpoint is not a URL with a host")
		}
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	address, _, _ := strings.Cut(u.Host, ",")
	if at := (&url.URL{Host: address}); at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), port)
	}
	return address, nil
}
