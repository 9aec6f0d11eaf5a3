package kubernetes

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/elector-go/elector/backends"
)

var (
	errNoLease    = errors.New("the answer is not that of a Kubernetes API server")
	errTooLong    = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	errChanged    = errors.New("the Lease was written with another record than was sent")
	errToken      = errors.New("the token cannot be read")
	errNoRights   = errors.New("this account has no right to get leases")
	errWatchEnded = errors.New("the watch ended")
)

// classify is a [backends.Classify].
func (b *Backend) classify(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, errWatchEnded):
		return "it is made again", backends.ErrUnavailable
	case errors.Is(err, errToken):
		return "see the token file; the kubelet renews a pod's own", backends.ErrUnavailable
	case errors.Is(err, errNoRights):
		return b.grant(""), backends.ErrDenied
	case errors.Is(err, errChanged):
		return "an admission webhook changes annotations; exempt the leases of namespace " + b.namespace, backends.ErrMisconfigured
	case errors.Is(err, errNoLease), errors.Is(err, errTooLong):
		return "check host, port and proxies", backends.ErrMisconfigured
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)):
		return "TLS with the API server failed; check ca and server_name, when the certificates end, and whether the port speaks TLS (tls=false if not)", backends.ErrMisconfigured
	}
	s := &status{}
	if errors.As(err, &s) {
		return b.classifyStatus(s)
	}
	return "check that the API server runs (kubectl get --raw /readyz), and that the network and a proxy lead there", backends.ErrUnavailable
}

func (b *Backend) classifyStatus(s *status) (advice string, kind error) {
	says := func(words string) bool { return strings.Contains(s.Message, words) }
	switch {
	case s.starting:
		ready := *s
		ready.starting = false
		advice, _ = b.classifyStatus(&ready)
		return "the API server may not be ready (kubectl get --raw /readyz) and not know all accounts and rights yet; if it is, " + advice, backends.ErrUnavailable
	case says("denied the request"), says("denied request"):
		return "an admission webhook or policy refuses this Lease; exempt the leases of namespace " + b.namespace, backends.ErrDenied
	case says("failed calling webhook"):
		return "an admission webhook does not answer; exempt the leases of namespace " + b.namespace + ", or an outage of the webhook ends every lease", backends.ErrUnavailable
	case s.Code == http.StatusUnauthorized:
		return "the API server does not accept the credentials: check token_file, or cert and key, and that the service account exists", backends.ErrDenied
	case s.Code == http.StatusForbidden && says("is being terminated"):
		return fmt.Sprintf("namespace %s is being deleted; use another one", b.namespace), backends.ErrMisconfigured
	case s.Code == http.StatusForbidden && says("exceeded quota"):
		return fmt.Sprintf("raise the quota for count/leases.coordination.k8s.io in namespace %s", b.namespace), backends.ErrMisconfigured
	case s.Code == http.StatusForbidden && says("cannot list"):
		return b.grant(",list"), backends.ErrDenied
	case s.Code == http.StatusForbidden:
		return b.grant(""), backends.ErrDenied
	case s.noNamespace() && b.base.ReadOnly():
		return fmt.Sprintf("there is no namespace %s, so no election has ever used it; check the namespace in the URL", b.namespace), backends.ErrMisconfigured
	case s.noNamespace():
		return fmt.Sprintf("correct the namespace in the URL, or run: kubectl create namespace %s", b.namespace), backends.ErrMisconfigured
	case s.Code == http.StatusNotFound && s.Kind != "Status", s.Code/100 == 3:
		return "what answers is not a Kubernetes API server; check host, port and proxies", backends.ErrMisconfigured
	case s.Code == http.StatusNotFound:
		return "the API server has no leases of coordination.k8s.io/v1, or the Lease was deleted meanwhile", backends.ErrUnavailable
	case s.Code == http.StatusUnprocessableEntity, s.Code == http.StatusBadRequest, s.Code == http.StatusRequestEntityTooLarge:
		return "the API server finds the Lease invalid", backends.ErrMisconfigured
	case s.Code == http.StatusGone:
		return "the list took too long; try again", backends.ErrUnavailable
	case s.Code == http.StatusTooManyRequests:
		return "the API server is overloaded, or its priority and fairness settings limit this account (kubectl get flowschemas)", backends.ErrUnavailable
	}
	return "see the log of the API server; it may pass", backends.ErrUnavailable
}

// grant is what to do about a missing right, in addition to those of a candidate. For
// reading alone nothing is added.
func (b *Backend) grant(more string) string {
	if b.base.ReadOnly() {
		return fmt.Sprintf("an administrator can run: kubectl -n %[1]s create role elector-reader --verb=get,list,watch --resource=leases.coordination.k8s.io; kubectl -n %[1]s create rolebinding elector-reader --role=elector-reader --serviceaccount=%[1]s:ACCOUNT; but if there is no namespace %[1]s, no election has ever used it, and the URL names the wrong one", b.namespace)
	}
	return fmt.Sprintf("an administrator can run: kubectl -n %[1]s create role elector --verb=get,create,update,watch%[2]s --resource=leases.coordination.k8s.io; kubectl -n %[1]s create rolebinding elector --role=elector --serviceaccount=%[1]s:ACCOUNT", b.namespace, more)
}
