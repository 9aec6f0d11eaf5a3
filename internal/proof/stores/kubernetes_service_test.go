//go:build kubernetes

package stores

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/kubernetes"
)

// A wire is the network of one pod, which can be cut.
type wire struct {
	http.RoundTripper
	token string
	cut   atomic.Bool
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

// A Service leads to the leader: in a term, after an orderly end, and after the leader was
// cut off from the API server. The documented role is enough.
func TestKubernetesService(t *testing.T) {
	s := newBilling(t)
	s.apply(t, "role.yaml")
	s.apply(t, "service.yaml")
	u, err := url.Parse(s.account(t, "invoices"))
	must(t, err)
	authority, err := os.ReadFile(u.Query().Get("ca"))
	must(t, err)
	token, err := os.ReadFile(u.Query().Get("token_file"))
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)

	const slice = "/apis/discovery.k8s.io/v1/namespaces/billing/endpointslices/invoices-leader"
	leads := func(addresses ...string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the Service leads to %q", addresses), func() error {
			content, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodGet, slice, "", nil)
			if err != nil {
				return err
			}
			var got struct {
				Endpoints []struct{ Addresses []string }
			}
			if err := json.Unmarshal(content, &got); err != nil {
				return err
			}
			var there []string
			for _, e := range got.Endpoints {
				there = append(there, e.Addresses...)
			}
			if strings.Join(there, " ") != strings.Join(addresses, " ") {
				return fmt.Errorf("it leads to %q", there)
			}
			return nil
		})
	}
	begin := func(address string) (w *wire, stop func()) {
		w = &wire{RoundTripper: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, token: strings.TrimSpace(string(token))}
		b, err := kubernetes.New(t.Context(), &http.Client{Transport: w}, &kubernetes.Options{BaseURL: "https://" + u.Host, Namespace: manifestNamespace})
		must(t, err)
		e, err := elector.New(b, "invoices", &elector.Options{ID: address, TTL: 3 * time.Second})
		must(t, err)
		work, err := kubernetes.PointService(b, kubernetes.Endpoint{Service: "invoices", Address: netip.MustParseAddr(address), Port: 8080, Pod: "pod"}, func(ctx context.Context, _ *elector.Lease) error {
			<-ctx.Done()
			return nil
		})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, work) }()
		return w, func() {
			cancel()
			if err := <-done; err != nil && !errors.Is(err, elector.ErrLost) { // it was cut off
				t.Errorf("%s: Run returns %v", address, err)
			}
			e.Close()
			b.Close()
		}
	}
	first, stopFirst := begin("10.0.0.1")
	leads("10.0.0.1")
	_, stopSecond := begin("10.0.0.2")
	first.cut.Store(true)
	leads("10.0.0.2")
	first.cut.Store(false)
	stopFirst()
	leads("10.0.0.2")
	stopSecond()
	leads()
}
