package kubernetes

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// The messages are those of an API server of version 1.36.
func TestErrors(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	for _, c := range []struct {
		code            int
		reason, message string
		want            error
		advice          string
	}{
		{401, "Unauthorized", "Unauthorized", backends.ErrDenied, "token_file"},
		{403, "Forbidden", `leases.coordination.k8s.io "a" is forbidden: User "system:serviceaccount:team:x" cannot get resource "leases"`, backends.ErrDenied, "kubectl -n team create role"},
		{403, "Forbidden", `leases.coordination.k8s.io is forbidden: User "u" cannot list resource "leases"`, backends.ErrDenied, "update,watch,list --resource"},
		{403, "Forbidden", `leases.coordination.k8s.io "a" is forbidden: unable to create new content in namespace team because it is being terminated`, backends.ErrMisconfigured, "is being deleted"},
		{403, "Forbidden", `leases.coordination.k8s.io "a" is forbidden: exceeded quota: few, requested: count/leases.coordination.k8s.io=1, used: …`, backends.ErrMisconfigured, "quota"},
		{400, "", `admission webhook "policy.example.com" denied the request: no leases here`, backends.ErrDenied, "exempt the leases"},
		{422, "Invalid", `leases.coordination.k8s.io "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, backends.ErrDenied, "exempt the leases"},
		{500, "InternalError", `Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: connection refused`, backends.ErrUnavailable, "does not answer"},
		{422, "Invalid", `Lease.coordination.k8s.io "a" is invalid: metadata.annotations: Too long`, backends.ErrMisconfigured, "invalid"},
		{413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", backends.ErrMisconfigured, "invalid"},
		{429, "TooManyRequests", "too many requests, please try again later", backends.ErrUnavailable, "overloaded"},
		{500, "InternalError", "etcdserver: leader changed", backends.ErrUnavailable, "it may pass"},
		{503, "ServiceUnavailable", "apiserver is shutting down", backends.ErrUnavailable, "it may pass"},
		{504, "Timeout", "Timeout: request did not complete within requested timeout", backends.ErrUnavailable, "it may pass"},
	} {
		f.on("GET", refuses(c.code, c.reason, c.message, "leases", "a"))
		_, err := b.Load(t.Context(), "a")
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.advice) || !strings.Contains(err.Error(), "reading election a") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%d %s: got %v, want %v and %q", c.code, c.message, err, c.want, c.advice)
		}
	}
	// An API server that begins to answer refuses what it will allow.
	for _, c := range []struct {
		code, ready int
		header      string // of the question
		want        error
	}{
		{401, 500, "", backends.ErrUnavailable},
		{401, 403, "", backends.ErrUnavailable},
		{401, 401, "", backends.ErrDenied}, // it lets in no one without credentials
		{403, 500, "Bearer hunter2", backends.ErrUnavailable},
		{403, 403, "Bearer hunter2", backends.ErrUnavailable},
	} {
		f.on("READY", refuses(c.ready, "", "", "", ""))
		f.on("GET", refuses(c.code, "", "", "leases", "a"))
		_, err := b.Load(t.Context(), "a")
		if !errors.Is(err, c.want) || c.want == backends.ErrUnavailable && !strings.Contains(err.Error(), "not be ready") {
			t.Errorf("%d while the server answers %d: %v", c.code, c.ready, err)
		}
		all := f.requests("READY")
		if got := all[len(all)-1].header.Get("Authorization"); got != c.header {
			t.Errorf("whether it is ready is asked with %q", got)
		}
	}
	// It may have become ready between its two answers.
	f.on("READY", nil)
	f.on("GET", func(w http.ResponseWriter, r *http.Request) {
		f.on("GET", nil)
		refuses(403, "Forbidden", "", "leases", "a")(w, r)
	})
	if r, err := b.Load(t.Context(), "a"); err != nil {
		t.Errorf("refused once by a server that is ready then: %+v, %v", r, err)
	}
	f.on("POST", refuses(404, "NotFound", `namespaces "team" not found`, "namespaces", "team"))
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "kubectl create namespace team") {
		t.Errorf("no namespace: %v", err)
	}
	f.on("GET", http.NotFound)
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "not a Kubernetes API server") {
		t.Errorf("another server: %v", err)
	}
	f.on("GET", refuses(500, "", strings.Repeat("x", 10_000)+"\xff\nsecond line", "", ""))
	if _, err := b.Load(t.Context(), "a"); err == nil || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
		t.Errorf("a long message: %v", err)
	}
}
