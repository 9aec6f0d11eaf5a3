//go:build kubernetes

package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/kubernetes"
	"github.com/elector-go/elector/conformance"
)

// The suite runs on a cluster with
//
//	ELECTOR_TEST_KUBERNETES='kubernetes://HOST:6443/NAMESPACE?ca=FILE&token_file=FILE' go test -tags kubernetes -count=1 -timeout=60m -run 'TestKubernetes$' .
//
// and a token that may get, create, update, watch, list and delete leases of the
// namespace. It leaves its Leases there.
func TestKubernetes(t *testing.T) {
	s := obtain(t, Kubernetes)
	conform(t, Kubernetes, s.How, conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		MaxContent:   mostKubernetes,
		Raw:          rawLeases(s),
		Setups:       kubernetesSetups(s),
	})
}

// mostKubernetes is what the annotations of a Lease have room for.
const mostKubernetes = 200 << 10

func rawLeases(s *Store) *conformance.Raw {
	return &conformance.Raw{
		Get: func(t testing.TB, name string) []byte {
			l, err := s.Lease(t.Context(), name)
			must(t, err)
			if content := l.Record(); l == nil || content != nil {
				return content
			}
			return []byte{}
		},
		Put: func(t testing.TB, name string, content []byte) {
			l, err := s.Lease(t.Context(), name)
			must(t, err)
			if l == nil {
				l = Lease{}
			}
			if !utf8.Valid(content) {
				content = append([]byte("not UTF-8: "), bytes.ToValidUTF8(content, []byte("?"))...) // no annotation holds it
			}
			l.SetRecord(content)
			if done, err := s.PutLease(t.Context(), name, l); err != nil || !done {
				t.Fatal("the Lease was changed meanwhile", err)
			}
		},
		Delete: func(t testing.TB, name string) { must(t, s.DeleteLease(t.Context(), name)) },
	}
}

// with changes the parameters of a URL.
func with(rawURL string, change func(u *url.URL, q url.Values)) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	change(u, q)
	u.RawQuery = q.Encode()
	return u.String()
}

// kubernetesSetups are servers, tokens and namespaces that do not serve.
func kubernetesSetups(s *Store) map[string]func(testing.TB) error {
	setup := func(want error, change func(t testing.TB, u *url.URL, q url.Values)) func(testing.TB) error {
		return func(t testing.TB) error {
			err := openError(t, with(s.URL, func(u *url.URL, q url.Values) { change(t, u, q) }))
			if err != nil && !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			return err
		}
	}
	return map[string]func(testing.TB) error{
		"no server": setup(backends.ErrUnavailable, func(t testing.TB, u *url.URL, _ url.Values) { u.Host = vacantAddress(t) }),
		"a wrong token": setup(backends.ErrDenied, func(t testing.TB, _ *url.URL, q url.Values) {
			file := filepath.Join(t.TempDir(), "token")
			must(t, os.WriteFile(file, []byte("not-the-token"), 0o600))
			q.Set("token_file", file)
		}),
		"no token":             setup(backends.ErrDenied, func(_ testing.TB, _ *url.URL, q url.Values) { q.Del("token_file") }),
		"another namespace":    setup(backends.ErrDenied, func(_ testing.TB, u *url.URL, _ url.Values) { u.Path = "/kube-system" }),
		"an unknown authority": setup(backends.ErrMisconfigured, func(_ testing.TB, _ *url.URL, q url.Values) { q.Del("ca") }),
		"no TLS": setup(backends.ErrMisconfigured, func(_ testing.TB, u *url.URL, q url.Values) {
			u.RawQuery = ""
			q.Del("ca")
			q.Del("token_file")
			q.Set("tls", "false")
		}),
		"an unknown parameter":  setup(backends.ErrURL, func(_ testing.TB, _ *url.URL, q url.Values) { q.Set("kubeconfig", "x") }),
		"a password in the URL": setup(backends.ErrURL, func(_ testing.TB, u *url.URL, _ url.Values) { u.User = url.UserPassword("u", "not-the-password") }),
	}
}

// A kubernetesScene is a store that the tests started, with a handle as the user.
type kubernetesScene struct {
	*Store
	b backends.Watcher
}

func newKubernetesScene(t *testing.T) kubernetesScene {
	t.Helper()
	s := begin(t, Kubernetes)
	return kubernetesScene{s, handleOn(t, s.URL)}
}

func handleOn(t *testing.T, storeURL string) backends.Watcher {
	t.Helper()
	b := opener(storeURL)(t)
	t.Cleanup(func() { b.Close() })
	return b.(backends.Watcher)
}

func kubernetesRecord(nonce string, sequence uint64) backends.Record {
	return backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: nonce, Sequence: sequence}}
}

// create makes a request as the administrator, with an object in JSON.
func (s kubernetesScene) create(t *testing.T, path string, object any) {
	t.Helper()
	body, err := json.Marshal(object)
	must(t, err)
	_, err = s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPost, path, "application/json", body)
	must(t, err)
}

// The server ends, stands still and comes back as others do.
func TestKubernetesServer(t *testing.T) {
	s := newKubernetesScene(t)
	k := s.server.(*kubernetesServer)
	first, err := s.b.Swap(t.Context(), "a", backends.Record{}, kubernetesRecord("n", 1))
	must(t, err)
	must(t, s.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.b.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that stands still: %v", err)
	}
	must(t, s.Continue())
	if r, err := s.b.Load(t.Context(), "a"); err != nil || r != first {
		t.Errorf("got %+v, %v", r, err)
	}
	must(t, s.Kill())
	if _, err := s.b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("without a server: %v", err)
	}
	must(t, s.Restart(t.Context()))
	if r, err := s.b.Load(t.Context(), "a"); err != nil || r != first {
		t.Errorf("after a restart: %+v, %v", r, err)
	}
	pids := []int{k.api.pid, k.etcd.pid, k.api.guard.cmd.Process.Pid, k.etcd.guard.cmd.Process.Pid}
	must(t, s.b.Close())
	must(t, s.Stop())
	if left := alive(t, pids); left != nil || isThere(t, k.api.dir) || isThere(t, k.etcd.dir) {
		t.Errorf("processes %v are left, or a folder", left)
	}
}

// What the adapter rests on: an API server refuses a blind overwrite, but takes a
// PUT without a version for a creation, so the adapter sends uid and version.
func TestKubernetesConditions(t *testing.T) {
	s := newKubernetesScene(t)
	put := func(name string, metadata map[string]any) int {
		t.Helper()
		metadata["name"] = name
		body, err := json.Marshal(map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})
		must(t, err)
		_, err = s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPut, s.leasePath(name), "application/json", body)
		if err != nil && refused(err) == 0 {
			t.Fatal(err)
		}
		return refused(err)
	}
	type m = map[string]any
	old, err := s.b.Swap(t.Context(), "a", backends.Record{}, kubernetesRecord("n", 1))
	must(t, err)
	uid, version, _ := strings.Cut(string(old.Version), "/")
	version, _, _ = strings.Cut(version, "/") // what follows is no part of it
	for what, c := range map[string]struct {
		name     string
		metadata m
		want     []int // 0 is success
	}{
		"without a version, on one that exists": {"a", m{}, []int{422}},
		"without a version, on none":            {"b", m{}, []int{0}},
		"with uid and version, on none":         {"c", m{"uid": uid, "resourceVersion": version}, []int{404, 409}},
		"with another uid":                      {"a", m{"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": version}, []int{409}},
		"with another version":                  {"a", m{"uid": uid, "resourceVersion": "1"}, []int{409}},
	} {
		if got := put(c.name, c.metadata); !slices.Contains(c.want, got) {
			t.Errorf("a PUT %s: %d, want one of %v", what, got, c.want)
		}
	}
	// Deleted and created anew: neither the uid nor the version comes back.
	must(t, s.DeleteLease(t.Context(), "a"))
	if _, err := s.b.Swap(t.Context(), "a", old, kubernetesRecord("n", 2)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("a deleted Lease: %v", err)
	}
	again, err := s.b.Swap(t.Context(), "a", backends.Record{}, kubernetesRecord("n", 1))
	must(t, err)
	if _, err := s.b.Swap(t.Context(), "a", old, kubernetesRecord("n", 2)); !errors.Is(err, backends.ErrConflict) || again.Version == old.Version {
		t.Errorf("a Lease that was created anew: %v", err)
	}
	// What kubectl shows.
	content, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodGet, s.leasePath("a"), "", nil)
	must(t, err)
	for _, want := range []string{`"holderIdentity":"h"`, `"leaseDurationSeconds":15`, `"renewTime":"20`, `"app.kubernetes.io/managed-by":"elector"`} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the Lease has no %s: %s", want, content)
		}
	}
}

// Two API servers on one etcd are one store.
func TestKubernetesServersOnOneEtcd(t *testing.T) {
	s := newKubernetesScene(t)
	k := s.server.(*kubernetesServer)
	second, err := startAPIServer(t.Context(), k.etcd.address(), k.api.dir)
	must(t, err)
	defer func() { must(t, second.stop()) }()
	other := apiServerURL(second, KubernetesUser)
	turn := 0
	conform(t, Kubernetes+", two servers", s.How, conformance.Harness{
		Open: func(t testing.TB) backends.Backend {
			turn++
			return opener([]string{s.URL, other}[turn%2])(t)
		},
		Slow:       true,
		MaxContent: mostKubernetes,
		Raw:        rawLeases(s.Store),
	})
}

// A watch that ends returns, and the next one sees what has changed: by the server's
// time-out, and when its history is compacted.
func TestKubernetesWatchEnds(t *testing.T) {
	s := newKubernetesScene(t)
	k := s.server.(*kubernetesServer)
	hasty, err := startAPIServer(t.Context(), k.etcd.address(), k.api.dir, "--min-request-timeout=1")
	must(t, err)
	defer func() { must(t, hasty.stop()) }()
	b := handleOn(t, apiServerURL(hasty, KubernetesUser))
	first, err := b.Swap(t.Context(), "a", backends.Record{}, kubernetesRecord("n", 1))
	must(t, err)
	states := make(chan backends.Record, 100)
	err = b.Watch(t.Context(), "a", func(r backends.Record) { states <- r })
	if r := <-states; r != first || !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "the watch ended") {
		t.Fatalf("it reported %+v and ended with %v", r, err)
	}
	second, err := s.b.Swap(t.Context(), "a", first, kubernetesRecord("n", 2))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.Watch(ctx, "a", func(r backends.Record) { states <- r; cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if r := <-states; r != second {
		t.Errorf("it reported %+v, want %+v", r, second)
	}

	// A Lease that was not written for long is older than what a server without a
	// cache can watch from.
	client, err := etcdClient(t.Context(), k.etcd.address(), Login{})
	must(t, err)
	defer client.Close()
	var written *clientv3.PutResponse
	for range 3 {
		written, err = client.Put(t.Context(), "/elsewhere", "")
		must(t, err)
	}
	_, err = client.Compact(t.Context(), written.Header.Revision)
	must(t, err)
	uncached, err := startAPIServer(t.Context(), k.etcd.address(), k.api.dir, "--watch-cache=false")
	must(t, err)
	defer func() { must(t, uncached.stop()) }()
	_, version, _ := strings.Cut(string(second.Version), "/")
	version, _, _ = strings.Cut(version, "/") // what follows is no part of it
	uncachedURL := apiServerURL(uncached, KubernetesUser)
	u, err := url.Parse(uncachedURL)
	must(t, err)
	content, err := kubernetesAsk(t.Context(), uncachedURL, u.Query().Get("token_file"), http.MethodGet,
		s.leasePath("")+"?watch=1&timeoutSeconds=30&fieldSelector=metadata.name%3Da&resourceVersion="+version, "", nil)
	if refused(err) != http.StatusGone && !bytes.Contains(content, []byte(`"code":410`)) {
		t.Errorf("a watch from what was read last: %s, %v; want 410", content, err)
	}
	b = handleOn(t, uncachedURL)
	third := kubernetesRecord("n", 3)
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Watch(ctx, "a", func(r backends.Record) { states <- r }) }()
	if r := <-states; r != second {
		t.Errorf("it reported %+v, want %+v", r, second)
	}
	third, err = s.b.Swap(t.Context(), "a", second, third)
	must(t, err)
	if r := <-states; r != third {
		t.Errorf("it reported %+v, want %+v", r, third)
	}
	cancel()
	<-ended
}

// A token that was replaced is used from the next request on, and the old one, which
// the API server accepts no longer, is not.
func TestKubernetesTokenIsRotated(t *testing.T) {
	s := begin(t, Kubernetes)
	u, err := url.Parse(s.URL)
	must(t, err)
	read := func(user string) []byte {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(u.Query().Get("token_file")), user))
		must(t, err)
		return content
	}
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, read(KubernetesUser), 0o600))
	b := handleOn(t, with(s.URL, func(_ *url.URL, q url.Values) { q.Set("token_file", file) }))
	first, err := b.Swap(t.Context(), "a", backends.Record{}, kubernetesRecord("n", 1))
	must(t, err)
	must(t, os.WriteFile(file, []byte("expired"), 0o600))
	if _, err := b.Swap(t.Context(), "a", first, kubernetesRecord("n", 2)); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "token_file") {
		t.Errorf("with a token that is not valid: %v", err)
	}
	must(t, os.WriteFile(file, read(KubernetesAdmin), 0o600))
	if _, err := b.Swap(t.Context(), "a", first, kubernetesRecord("n", 2)); err != nil {
		t.Errorf("with the next token: %v", err)
	}
}

// kubectl delete lease, under a leader: it loses the election, and the next winner has
// a higher token.
func TestKubernetesLeaseIsDeleted(t *testing.T) {
	s := newKubernetesScene(t)
	e, err := elector.New(s.b, "invoices", &elector.Options{TTL: 3 * time.Second})
	must(t, err)
	defer e.Close()
	l, err := e.Campaign(t.Context())
	must(t, err)
	must(t, s.DeleteLease(t.Context(), "invoices"))
	<-l.Context().Done()
	if err := l.Check(); !errors.Is(err, elector.ErrLost) {
		t.Errorf("the leader: %v", err)
	}
	next, err := e.Campaign(t.Context())
	must(t, err)
	if next.Token() <= l.Token() {
		t.Errorf("token %d follows token %d", next.Token(), l.Token())
	}
	must(t, next.Release(t.Context()))
}

// An admission policy that refuses a Lease, and a namespace that does not exist, are
// reported as what they are.
func TestKubernetesPolicy(t *testing.T) {
	s := newKubernetesScene(t)
	type m = map[string]any
	const admission = "/apis/admissionregistration.k8s.io/v1/"
	s.create(t, admission+"validatingadmissionpolicies", m{"metadata": m{"name": "no"}, "spec": m{
		"matchConstraints": m{"resourceRules": []m{{"apiGroups": []string{"coordination.k8s.io"}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE"}, "resources": []string{"leases"}}}},
		"validations":      []m{{"expression": "object.metadata.name != 'refused'", "message": "not this one"}}}})
	s.create(t, admission+"validatingadmissionpolicybindings", m{"metadata": m{"name": "no"}, "spec": m{"policyName": "no", "validationActions": []string{"Deny"}}})
	eventually(t, "the policy is known", func() error {
		_, err := s.b.Swap(t.Context(), "refused", backends.Record{}, kubernetesRecord("n", 1))
		if err == nil {
			must(t, s.DeleteLease(t.Context(), "refused"))
			return errors.New("it was not refused")
		}
		if !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "policy refuses") || !strings.Contains(err.Error(), "not this one") {
			t.Errorf("got %v", err)
		}
		return nil
	})
	// A namespace that does not exist is found by the first creation, by those who
	// have rights everywhere.
	admin := handleOn(t, with(s.URL, func(u *url.URL, q url.Values) {
		u.Path = "/missing"
		q.Set("token_file", filepath.Join(filepath.Dir(q.Get("token_file")), KubernetesAdmin))
	}))
	if _, err := admin.Swap(t.Context(), "a", backends.Record{}, kubernetesRecord("n", 1)); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "kubectl create namespace missing") {
		t.Errorf("got %v", err)
	}
}
