package stores

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// kubernetesNamespace is that of the store's URL.
const kubernetesNamespace = "suite"

// kubernetesShared is the folder with what several API servers have in common: a
// token for each user, in a file with the user's name, and the key of service
// accounts.
const kubernetesShared = "shared"

// The users of an API server that the tests started.
const (
	KubernetesAdmin  = "admin"
	KubernetesUser   = "elector" // may do with leases of the namespace what the adapter documents
	KubernetesNobody = "nobody"  // may do nothing, until a test grants it
)

// startKubernetes starts an API server and its etcd.
func startKubernetes(ctx context.Context, m manner) (*Store, error) {
	etcd, err := startEtcd(ctx, m)
	if err != nil {
		return nil, err
	}
	api, err := startAPIServer(ctx, etcd.Address, "")
	if err != nil {
		return nil, errors.Join(err, etcd.Stop())
	}
	s := &Store{
		Kind:    Kubernetes,
		How:     fmt.Sprintf("local processes %s on etcd %s (built from their modules)", api.name, binaries.EtcdVersion),
		URL:     apiServerURL(api, KubernetesUser),
		Address: api.address(),
		PID:     api.pid,
		server:  &kubernetesServer{api: api, etcd: etcd.server.(*server)},
	}
	if err := kubernetesPrepare(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing %s: %w", s, err), s.Stop())
	}
	return s, nil
}

// A kubernetesServer is an API server with its etcd.
type kubernetesServer struct{ api, etcd *server }

func (k *kubernetesServer) process() int  { return k.api.process() }
func (k *kubernetesServer) stop() error   { return errors.Join(k.api.stop(), k.etcd.stop()) }
func (k *kubernetesServer) pause() error  { return errors.Join(k.api.pause(), k.etcd.pause()) }
func (k *kubernetesServer) resume() error { return errors.Join(k.etcd.resume(), k.api.resume()) }
func (k *kubernetesServer) kill() error   { return errors.Join(k.api.kill(), k.etcd.kill()) }

func (k *kubernetesServer) restart(ctx context.Context) error {
	if !k.api.hasExited() {
		if err := k.api.kill(); err != nil {
			return err
		}
	}
	if err := k.etcd.restart(ctx); err != nil {
		return err
	}
	return k.api.restart(ctx)
}

// startAPIServer starts an API server on an etcd. A second one gets the folder of the
// first: they share users, and the key of service accounts.
func startAPIServer(ctx context.Context, etcd, of string, more ...string) (*server, error) {
	program, err := binaries.Kubernetes()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores KINDS=kubernetes", err)
	}
	return newServer(ctx, recipe{
		name:    "kube-apiserver " + binaries.KubernetesVersion,
		program: program,
		prepare: func(_ context.Context, s *server) error {
			if of != "" {
				return os.CopyFS(filepath.Join(s.dir, kubernetesShared), os.DirFS(filepath.Join(of, kubernetesShared)))
			}
			return kubernetesFiles(filepath.Join(s.dir, kubernetesShared))
		},
		arguments: func(s *server) []string {
			key := filepath.Join(s.dir, kubernetesShared, "sa.key")
			return append([]string{
				"--etcd-servers=http://" + etcd,
				"--bind-address=127.0.0.1",
				"--advertise-address=127.0.0.1",
				"--secure-port=" + strconv.Itoa(s.port),
				"--cert-dir=" + filepath.Join(s.dir, "certs"),
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + key,
				"--service-account-signing-key-file=" + key,
				"--service-cluster-ip-range=10.0.0.0/24",
				"--token-auth-file=" + filepath.Join(s.dir, kubernetesShared, "tokens.csv"),
				"--authorization-mode=RBAC",
				"--endpoint-reconciler-type=none",
				"--enable-priority-and-fairness=false",
				"--profiling=false",
			}, more...)
		},
		ready: func(ctx context.Context, s *server) error {
			_, err := kubernetesAsk(ctx, apiServerURL(s, KubernetesAdmin), filepath.Join(s.dir, kubernetesShared, KubernetesAdmin), http.MethodGet, "/readyz", "", nil)
			return err
		},
		quit: syscall.SIGKILL, // it waits for clients otherwise
	})
}

// kubernetesFiles makes the key of service accounts, and a token for each user.
func kubernetesFiles(dir string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return err
	}
	files := map[string]string{"sa.key": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))}
	for id, user := range []string{KubernetesAdmin, KubernetesUser, KubernetesNobody} {
		files[user] = rand.Text()
		files["tokens.csv"] += fmt.Sprintf("%s,%s,%d", files[user], user, id)
		if user == KubernetesAdmin {
			files["tokens.csv"] += `,"system:masters"`
		}
		files["tokens.csv"] += "\n"
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// apiServerURL is for the adapter, as a user.
func apiServerURL(s *server, user string) string {
	return "kubernetes://" + s.address() + "/" + kubernetesNamespace + "?" + url.Values{
		"ca":         {filepath.Join(s.dir, "certs", "apiserver.crt")},
		"token_file": {filepath.Join(s.dir, kubernetesShared, user)},
	}.Encode()
}

// kubernetesAsk makes a request to the API server of a URL, with the token in a file.
// Only the server that the tests started has the key for the certificate in its
// folder, so the answer is this very server's.
func kubernetesAsk(ctx context.Context, rawURL, tokenFile, method, path, contentType string, body []byte) ([]byte, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("the URL of the API server cannot be read")
	}
	authority, err := os.ReadFile(u.Query().Get("ca"))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+u.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = &KubernetesRefusal{Code: answer.StatusCode, Text: fmt.Sprintf("%s %s: %s: %.300s", method, path, answer.Status, content)}
	}
	return content, err
}

// A KubernetesRefusal is an answer of an API server that is not a success.
type KubernetesRefusal struct {
	Code int
	Text string
}

func (r *KubernetesRefusal) Error() string { return r.Text }

// kubernetesPrepare makes the namespace and lets the user elect in it.
func kubernetesPrepare(ctx context.Context, s *Store) error {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + kubernetesNamespace
	type m = map[string]any
	for _, object := range []struct {
		path string
		body m
	}{
		{"/api/v1/namespaces", m{"metadata": m{"name": kubernetesNamespace}}},
		{rbac + "/roles", m{"metadata": m{"name": "elector"}, "rules": []m{{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": []string{"get", "create", "update", "watch", "list"}}}}},
	} {
		body, err := json.Marshal(object.body)
		if err != nil {
			return err
		}
		if _, err := s.AskKubernetes(ctx, KubernetesAdmin, http.MethodPost, object.path, "application/json", body); err != nil {
			return err
		}
	}
	if err := s.GrantKubernetes(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return until(ctx, 5*time.Second, func(ctx context.Context) error { // what the authorizer knows follows what was written
		_, err := s.AskKubernetes(ctx, KubernetesUser, http.MethodGet, s.leasePath(""), "", nil)
		return err
	})
}

// kubernetesBindings are in the namespace of the store's URL.
const kubernetesBindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + kubernetesNamespace + "/rolebindings"

// GrantKubernetes lets the user of the URL elect. What the API server's authorizer
// knows follows shortly after.
func (s *Store) GrantKubernetes(ctx context.Context) error {
	body := fmt.Sprintf(`{"metadata":{"name":"elector"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"elector"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"%s"}]}`, KubernetesUser)
	_, err := s.AskKubernetes(ctx, KubernetesAdmin, http.MethodPost, kubernetesBindings, "application/json", []byte(body))
	return err
}

// RevokeKubernetes takes all rights from the user of the URL.
func (s *Store) RevokeKubernetes(ctx context.Context) error {
	_, err := s.AskKubernetes(ctx, KubernetesAdmin, http.MethodDelete, kubernetesBindings+"/elector", "", nil)
	return err
}

// AskKubernetes makes a request to a store of kind Kubernetes, as one of its users; as
// that of the URL, if the store is not ours. An answer that is not a success is a
// *KubernetesRefusal.
func (s *Store) AskKubernetes(ctx context.Context, user, method, path, contentType string, body []byte) ([]byte, error) {
	if s.behind != nil {
		s = s.behind
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("the URL of the API server cannot be read")
	}
	file := u.Query().Get("token_file")
	if s.server != nil {
		file = filepath.Join(filepath.Dir(file), user)
	}
	return kubernetesAsk(ctx, s.URL, file, method, path, contentType, body)
}
