package stores

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Plainly returns a store of kind Kubernetes that is ours behind a server that speaks
// plain HTTP, as kubectl proxy does, for those who look at what is sent. Any other
// store it returns as it is. done ends the server, and not the store.
func (s *Store) Plainly() (plain *Store, done func() error, err error) {
	if s.Kind != Kubernetes {
		return s, func() error { return nil }, nil
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, errors.New("the URL of the API server cannot be read")
	}
	authority, err := os.ReadFile(u.Query().Get("ca"))
	if err != nil {
		return nil, nil, err
	}
	token, err := os.ReadFile(filepath.Join(filepath.Dir(u.Query().Get("token_file")), KubernetesUser))
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	through := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 100}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: u.Host})
	forward.Transport, forward.FlushInterval, forward.ErrorLog = through, -1, log.New(io.Discard, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		forward.ServeHTTP(w, r)
	})}
	go server.Serve(l) // until done
	copied := *s
	copied.behind = s
	copied.Address = l.Addr().String()
	copied.URL = "kubernetes://" + copied.Address + u.Path + "?tls=false"
	copied.How += ", behind a proxy that ends TLS"
	return &copied, func() error { defer through.CloseIdleConnections(); return server.Close() }, nil
}
