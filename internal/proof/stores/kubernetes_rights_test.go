//go:build kubernetes

package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/kubernetes"
	"github.com/elector-go/elector/internal/page"
)

// The folder and the namespace of the manifests.
const (
	manifests         = "../../../examples/kubernetes/"
	manifestNamespace = "billing"
)

var kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)

// manifestPaths are where objects are created.
var manifestPaths = map[string]string{
	"ServiceAccount":                   "/api/v1/namespaces/billing/serviceaccounts",
	"Pod":                              "/api/v1/namespaces/billing/pods",
	"Service":                          "/api/v1/namespaces/billing/services",
	"Role":                             "/apis/rbac.authorization.k8s.io/v1/namespaces/billing/roles",
	"RoleBinding":                      "/apis/rbac.authorization.k8s.io/v1/namespaces/billing/rolebindings",
	"Deployment":                       "/apis/apps/v1/namespaces/billing/deployments",
	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}

// apply creates the objects of a manifest, as kubectl apply does.
func (s kubernetesScene) apply(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(manifests + file)
	must(t, err)
	for _, object := range strings.Split(string(content), "\n---\n") {
		kind := kindLine.FindStringSubmatch(object)
		if kind == nil || manifestPaths[kind[1]] == "" {
			t.Fatalf("%s has an object of an unknown kind: %s", file, object)
		}
		_, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPost, manifestPaths[kind[1]]+"?fieldValidation=Strict", "application/yaml", []byte(object))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// newBilling is a store with the namespace of the manifests.
func newBilling(t *testing.T) kubernetesScene {
	t.Helper()
	s := newKubernetesScene(t)
	s.create(t, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": manifestNamespace}})
	return s
}

// account returns the URL of the namespace for a service account, with a token that
// the API server has made for it.
func (s kubernetesScene) account(t *testing.T, name string) string {
	t.Helper()
	content, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPost, manifestPaths["ServiceAccount"]+"/"+name+"/token", "application/json", []byte(`{"spec":{"expirationSeconds":600}}`))
	must(t, err)
	var made struct{ Status struct{ Token string } }
	must(t, json.Unmarshal(content, &made))
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(made.Status.Token), 0o600))
	return with(s.URL, func(u *url.URL, q url.Values) {
		u.Path = "/" + manifestNamespace
		q.Set("token_file", file)
	})
}

// eventually waits until the API server's authorizer knows what was written.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	if err := until(ctx, readyWithin, func(context.Context) error { return holds() }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// The API server takes all manifests as they are.
func TestKubernetesManifests(t *testing.T) {
	s := newBilling(t)
	files, err := filepath.Glob(manifests + "*.yaml")
	must(t, err)
	if len(files) < 4 {
		t.Fatalf("the manifests are %q", files)
	}
	for _, file := range files {
		s.apply(t, filepath.Base(file))
	}
}

// The documented role is enough for a candidate, and each of its verbs is needed.
func TestKubernetesRole(t *testing.T) {
	s := newBilling(t)
	s.apply(t, "role.yaml")
	account := s.account(t, "invoices")
	eventually(t, "the role is known", func() error { return opens(t, account, backends.Open) })
	b := handleOn(t, account)
	e, err := elector.New(b, "invoices", nil)
	must(t, err)
	defer e.Close()
	lease, err := e.Campaign(t.Context())
	must(t, err)
	must(t, lease.Proclaim(t.Context(), "10.0.0.1")) // a change, as a renewal is
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.Watch(ctx, "invoices", func(backends.Record) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a watch: %v", err)
	}
	must(t, lease.Release(t.Context()))
	if _, err := b.Load(t.Context(), "another"); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("another election: %v", err)
	}

	role := manifestPaths["Role"] + "/elector"
	content, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodGet, role, "", nil)
	must(t, err)
	var whole struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Metadata   map[string]any   `json:"metadata"`
		Rules      []map[string]any `json:"rules"`
	}
	must(t, json.Unmarshal(content, &whole))
	delete(whole.Metadata, "resourceVersion")
	needs := map[string]func() error{
		"get": func() error { _, err := b.Load(t.Context(), "invoices"); return err },
		"watch": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := b.Watch(ctx, "invoices", func(backends.Record) { cancel() })
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
		"update": func() error {
			r, err := b.Load(t.Context(), "invoices")
			if err == nil {
				r.Attempt.Sequence++
				_, err = b.Swap(t.Context(), "invoices", r, r)
			}
			return err
		},
		"create": func() error {
			if err := s.remove(t, "invoices"); err != nil {
				return err
			}
			_, err := b.Swap(t.Context(), "invoices", backends.Record{}, kubernetesRecord("n", 1))
			return err
		},
	}
	verbs := 0
	for i := range whole.Rules {
		for _, verb := range whole.Rules[i]["verbs"].([]any) {
			verbs++
			use := needs[verb.(string)]
			if use == nil {
				t.Errorf("the role has the verb %s, and no case shows that it is needed", verb)
				continue
			}
			less := whole
			less.Rules = slices.Clone(whole.Rules)
			less.Rules[i] = map[string]any{"verbs": slices.DeleteFunc(slices.Clone(whole.Rules[i]["verbs"].([]any)), func(v any) bool { return v == verb })}
			if len(less.Rules[i]["verbs"].([]any)) == 0 {
				less.Rules = slices.Delete(less.Rules, i, i+1)
			} else {
				for _, key := range []string{"apiGroups", "resources", "resourceNames"} {
					if value, ok := whole.Rules[i][key]; ok {
						less.Rules[i][key] = value
					}
				}
			}
			write := func(role any, path string) {
				body, err := json.Marshal(role)
				must(t, err)
				_, err = s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPut, path, "application/json", body)
				must(t, err)
			}
			write(less, role)
			eventually(t, fmt.Sprintf("without the verb %s a candidate is denied", verb), func() error {
				if err := use(); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "kubectl -n billing create role") {
					return fmt.Errorf("it gets %w", errors.Join(err, errors.New("no refusal")))
				}
				return nil
			})
			write(whole, role)
			eventually(t, fmt.Sprintf("with the verb %s it is not", verb), use)
		}
	}
	if verbs != len(needs) {
		t.Errorf("the role has %d verbs, want %d", verbs, len(needs))
	}
}

// remove deletes a Lease of the manifests' namespace.
func (s kubernetesScene) remove(t *testing.T, name string) error {
	_, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodDelete, "/apis/coordination.k8s.io/v1/namespaces/billing/leases/"+name, "", nil)
	if refused(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// The sidecar's role is enough to observe, and for nothing else.
func TestKubernetesObserver(t *testing.T) {
	s := newBilling(t)
	s.apply(t, "sidecar.yaml")
	account := s.account(t, "web")
	eventually(t, "the role is known", func() error { return opens(t, account, backends.Open) })
	must(t, opens(t, account, backends.OpenReadOnly)) // although it may not list
	b := handleOn(t, account)
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.Watch(ctx, "invoices", func(backends.Record) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a watch: %v", err)
	}
	if _, err := b.Swap(t.Context(), "invoices", backends.Record{}, kubernetesRecord("n", 1)); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("a write: %v", err)
	}
}

// The role of the page is enough to read, each of its verbs is needed, and nothing is
// written with it.
func TestKubernetesReader(t *testing.T) {
	s := newBilling(t)
	s.apply(t, "role.yaml")
	leader := s.account(t, "invoices")
	eventually(t, "the role is known", func() error { return opens(t, leader, backends.Open) })
	leadOnce(t, leader)

	type m = map[string]any
	s.create(t, manifestPaths["ServiceAccount"], m{"metadata": m{"name": "reader"}})
	s.create(t, manifestPaths["RoleBinding"], m{"metadata": m{"name": "reader"}, "roleRef": m{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "elector-reader"},
		"subjects": []m{{"kind": "ServiceAccount", "name": "reader", "namespace": manifestNamespace}}})
	role := []byte(strings.ReplaceAll(page.Blocks(t, "../../../docs/stores/kubernetes.md", "yaml", 1)[0], "NAMESPACE", manifestNamespace))
	content, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPost, manifestPaths["Role"]+"?fieldValidation=Strict", "application/yaml", role)
	must(t, err)
	var made struct {
		Rules []struct{ Resources, Verbs []string }
	}
	must(t, json.Unmarshal(content, &made))
	if len(made.Rules) != 1 || !slices.Equal(made.Rules[0].Resources, []string{"leases"}) || !slices.Equal(made.Rules[0].Verbs, []string{"get", "list", "watch"}) {
		t.Fatalf("the role of the page has the rules %+v", made.Rules)
	}

	reader := s.account(t, "reader")
	eventually(t, "the reader's role is known", func() error { return opens(t, reader, backends.OpenReadOnly) })
	before, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/billing/leases", "", nil)
	must(t, err)
	for call, err := range readerCalls(t, reader) {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	after, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/billing/leases", "", nil)
	must(t, err)
	if items := func(list []byte) string { _, all, _ := strings.Cut(string(list), `"items"`); return all }; items(before) != items(after) {
		t.Errorf("the Leases were %s and are %s", before, after)
	}

	for verb, fail := range map[string][]string{"get": {"history", "leader", "observe", "watch"}, "list": {"list"}, "watch": {"watch"}} {
		less := slices.DeleteFunc(slices.Clone(made.Rules[0].Verbs), func(v string) bool { return v == verb })
		body, err := json.Marshal(m{"metadata": m{"name": "elector-reader"}, "rules": []m{{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": less}}})
		must(t, err)
		_, err = s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodPut, manifestPaths["Role"]+"/elector-reader", "application/json", body)
		must(t, err)
		eventually(t, "the reader has not the verb "+verb, func() error {
			denied := []string{}
			for call, err := range readerCalls(t, reader) {
				if errors.Is(err, backends.ErrDenied) && strings.Contains(err.Error(), "--verb=get,list,watch") {
					denied = append(denied, call)
				} else if err != nil {
					return fmt.Errorf("%s: %w", call, err)
				}
			}
			if slices.Sort(denied); !slices.Equal(denied, fail) {
				return fmt.Errorf("denied are %q, want %q", denied, fail)
			}
			return nil
		})
	}

	nowhere := with(s.URL, func(u *url.URL, q url.Values) {
		u.Path = "/elector-that-is-not-there"
		q.Set("token_file", filepath.Join(filepath.Dir(q.Get("token_file")), KubernetesAdmin))
	})
	if err := opens(t, nowhere, backends.OpenReadOnly); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "there is no namespace elector-that-is-not-there, so no election has ever used it") {
		t.Errorf("a namespace that is not there: %v", err)
	}
}

// opens opens a store and closes it again.
func opens(t *testing.T, storeURL string, open func(context.Context, string) (backends.Backend, error)) error {
	b, err := open(t.Context(), storeURL)
	if err == nil {
		err = b.Close()
	}
	return err
}

// The policy lets no lower token overwrite a higher one, however it is written.
func TestKubernetesFence(t *testing.T) {
	s := newBilling(t)
	s.apply(t, "fence.yaml")
	const path = "/api/v1/namespaces/billing/configmaps"
	s.create(t, path, map[string]any{"metadata": map[string]any{"name": "ledger"}, "data": map[string]string{"last": "0"}})
	token := func(n int) string { return fmt.Sprintf(`"annotations":{"%s":"%d"}`, kubernetes.TokenAnnotation, n) }
	write := func(method, contentType, body string) error {
		query := ""
		if strings.Contains(contentType, "apply") {
			query = "?fieldManager=test&force=true"
		}
		_, err := s.AskKubernetes(t.Context(), KubernetesAdmin, method, path+"/ledger"+query, contentType, []byte(body))
		return err
	}
	merge := func(metadata, last string) error {
		return write(http.MethodPatch, "application/merge-patch+json", fmt.Sprintf(`{"metadata":{%s},"data":{"last":"%s"}}`, metadata, last))
	}
	stale := func(err error) bool {
		return refused(err) == http.StatusForbidden && strings.Contains(err.Error(), "stale fencing token")
	}
	must(t, merge(token(7), "1"))
	eventually(t, "the policy is known", func() error { // the highest token stays 7: each of these is lower
		if err := merge(token(6), "late"); !stale(err) {
			return errors.Join(errors.New("a lower token passes"), err, merge(`"annotations":null`, ""), merge(token(7), "1"))
		}
		return nil
	})
	for what, late := range map[string]func() error{
		"an apply": func() error {
			return write(http.MethodPatch, "application/apply-patch+yaml", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ledger",%s},"data":{"last":"late"}}`, token(6)))
		},
		"an update without a resource version": func() error {
			return write(http.MethodPut, "application/json", fmt.Sprintf(`{"metadata":{"name":"ledger",%s},"data":{"last":"late"}}`, token(6)))
		},
		"an update that forgets the token": func() error {
			return write(http.MethodPut, "application/json", `{"metadata":{"name":"ledger"},"data":{"last":"late"}}`)
		},
	} {
		if err := late(); !stale(err) {
			t.Errorf("%s with a lower token: %v", what, err)
		}
	}
	// What passes: the same leader again, the next one, and others who keep it.
	for _, metadata := range []string{token(7), token(8), `"labels":{"by":"another"}`} {
		if err := merge(metadata, "2"); err != nil {
			t.Errorf("with %s: %v", metadata, err)
		}
	}
	content, err := s.AskKubernetes(t.Context(), KubernetesAdmin, http.MethodGet, path+"/ledger", "", nil)
	if err != nil || strings.Contains(string(content), `"last":"late"`) || !strings.Contains(string(content), `"8"`) {
		t.Errorf("the object is %s, %v", content, err)
	}
}

// Doctor finds nothing on a store that is set up as documented, and says what to do
// about missing rights.
func TestKubernetesDoctor(t *testing.T) {
	program := buildTool(t)
	s := newKubernetesScene(t)
	d := diagnose(t, program, s.URL, "--ttl=10m")
	if d.code != 0 || slices.ContainsFunc(d.lines, func(l diagnosisLine) bool { return l.Level != "ok" }) ||
		!slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
			return l.Check == "rights" && l.Seen == "get, create, update, watch leases"
		}) {
		t.Errorf("exit code %d: %s", d.code, d.output)
	}
	nobody := with(s.URL, func(_ *url.URL, q url.Values) {
		q.Set("token_file", filepath.Join(filepath.Dir(q.Get("token_file")), KubernetesNobody))
	})
	if d := diagnose(t, program, nobody); d.code != 77 || !strings.Contains(d.output, "kubectl -n suite create role elector") {
		t.Errorf("without rights, exit code %d: %s", d.code, d.output)
	}
	type m = map[string]any
	const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + kubernetesNamespace
	s.create(t, rbac+"/roles", m{"metadata": m{"name": "less"}, "rules": []m{{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": []string{"get", "create", "watch"}}}})
	s.create(t, rbac+"/rolebindings", m{"metadata": m{"name": "less"}, "roleRef": m{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "less"},
		"subjects": []m{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KubernetesNobody}}})
	eventually(t, "the role is known", func() error {
		b, err := backends.Open(t.Context(), nobody)
		if err == nil {
			err = b.Close()
		}
		return err
	})
	d = diagnose(t, program, nobody)
	if !slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
		return l.Level == "fail" && l.Check == "rights" && strings.Contains(l.Seen, "may not update") && strings.Contains(l.Fix, "create role")
	}) {
		t.Errorf("without the right to update, exit code %d: %s", d.code, d.output)
	}
}
