package stores

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// A Lease is an object of a store of kind Kubernetes, behind the adapter's back. It is
// for elections whose names Kubernetes allows.
type Lease map[string]any

// recordAnnotation is where the adapter keeps the record.
const recordAnnotation = "elector-go.github.io/record"

// Metadata returns that of the Lease, for changing.
func (l Lease) Metadata() map[string]any {
	m, ok := l["metadata"].(map[string]any)
	if !ok && l != nil {
		m = map[string]any{}
		l["metadata"] = m
	}
	return m
}

// Record returns what is in the place of the record: nil if nothing is.
func (l Lease) Record() []byte {
	annotations, _ := l.Metadata()["annotations"].(map[string]any)
	if content, ok := annotations[recordAnnotation].(string); ok {
		return []byte(content)
	}
	return nil
}

// SetRecord puts content in the place of the record.
func (l Lease) SetRecord(content []byte) {
	annotations, ok := l.Metadata()["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		l.Metadata()["annotations"] = annotations
	}
	annotations[recordAnnotation] = string(content)
}

// leasePath is that of an election's Lease, or of all.
func (s *Store) leasePath(election string) string {
	namespace := kubernetesNamespace
	if u, err := url.Parse(s.URL); err == nil {
		namespace = strings.Trim(u.Path, "/")
	}
	path := "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
	if election != "" {
		path += "/" + election
	}
	return path
}

// Lease reads the Lease of an election; it is nil if there is none.
func (s *Store) Lease(ctx context.Context, election string) (l Lease, err error) {
	content, err := s.AskKubernetes(ctx, KubernetesAdmin, http.MethodGet, s.leasePath(election), "", nil)
	if refused(err) == http.StatusNotFound {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &l)
	}
	return l, err
}

// PutLease writes the Lease of an election: creates it if it has no resource version,
// and otherwise replaces the one of that version. It reports false if that is not
// what stands there.
func (s *Store) PutLease(ctx context.Context, election string, l Lease) (done bool, err error) {
	method, path := http.MethodPut, s.leasePath(election)
	if l.Metadata()["resourceVersion"] == nil {
		method, path = http.MethodPost, s.leasePath("")
	}
	l.Metadata()["name"] = election
	body, err := json.Marshal(l)
	if err != nil {
		return false, err
	}
	_, err = s.AskKubernetes(ctx, KubernetesAdmin, method, path, "application/json", body)
	if code := refused(err); code == http.StatusConflict || code == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// DeleteLease removes the Lease of an election. That there is none is no error.
func (s *Store) DeleteLease(ctx context.Context, election string) error {
	_, err := s.AskKubernetes(ctx, KubernetesAdmin, http.MethodDelete, s.leasePath(election), "", nil)
	if refused(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// refused returns the status of a refusal, or 0.
func refused(err error) int {
	var r *KubernetesRefusal
	if errors.As(err, &r) {
		return r.Code
	}
	return 0
}
