package consul

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
)

var (
	errNotConsul = errors.New("the answer is not one of Consul")
	errTokenFile = errors.New("the token file cannot be read")
	errSilent    = fmt.Errorf("a blocking query got no answer within %v", silence)
	errWentBack  = errors.New("the store's index went back")
)

func tooLarge() error { return backends.Foreign("it has more than %d bytes", maxAnswer/4*3) }

// A statusError is an answer with a status that the request does not expect.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", e.status, http.StatusText(e.status), e.text), ": ")
}

// A refusal is the answer to a transaction of which nothing was made.
type refusal struct{ operations []refused }

// A refused operation and why Consul did not make it.
type refused struct {
	OpIndex int
	What    string
}

func (e *refusal) Error() string {
	what := short(e.operations[0].What)
	if n := len(e.operations) - 1; n > 0 {
		what += fmt.Sprintf("; and %d more", n)
	}
	return what
}

// says reports whether an operation was refused for a reason that contains the
// words.
func (e *refusal) says(operation int, words string) bool {
	for _, o := range e.operations {
		if o.OpIndex == operation && strings.Contains(o.What, words) {
			return true
		}
	}
	return false
}

// denied reports whether the token may not make one of the operations.
func (e *refusal) denied() bool {
	return slices.ContainsFunc(e.operations, func(o refused) bool { return strings.Contains(o.What, noRight) })
}

// short bounds what others wrote.
func short(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 300)], "?")
}

// The reasons that Consul gives. Its status is 409 for all of them.
const (
	staleIndex = "index is stale"
	noSuchKey  = "doesn't exist"
	noRight    = "Permission denied"
)

// as returns the first error of type E that err wraps.
func as[E error](err error) (found E, ok bool) {
	ok = errors.As(err, &found)
	return found, ok
}

// swapError returns ErrConflict if the comparison, the first operation, failed.
func swapError(err error) error {
	if r, ok := as[*refusal](err); ok && r.says(0, staleIndex) {
		return backends.ErrConflict
	}
	return err
}

// look is the advice about a store that does not answer.
const look = "see whether the agent runs and the servers have a leader (consul operator raft list-peers), whether the network leads there, and whether it speaks TLS (consuls://) or not (consul://)"

// classify is a [backends.Classify].
func (b *Backend) classify(err error) (advice string, kind error) {
	status, text := 0, err.Error()
	if s, ok := as[*statusError](err); ok {
		status, text = s.status, s.text
	}
	r, isRefusal := as[*refusal](err)
	switch {
	case errors.Is(err, errNotConsul):
		return "what answers is not Consul's HTTP API; check host, port and proxies", backends.ErrMisconfigured
	case errors.Is(err, errTokenFile):
		return "check the file that token_file or CONSUL_HTTP_TOKEN_FILE names", backends.ErrUnavailable
	case errors.Is(err, errWentBack):
		return "it was restored from a snapshot, or the URL leads to several clusters", backends.ErrUnavailable
	case handshake(err), strings.Contains(text, "HTTP request to an HTTPS server"):
		return "TLS with the agent failed; check ca, cert, key and server_name, when the certificates end, and whether the agent speaks TLS (consuls://) or not (consul://)", backends.ErrMisconfigured
	case isRefusal && r.denied(), status == http.StatusForbidden && strings.Contains(text, noRight):
		return "an administrator can add to the policy of the token: " + b.rule(text), backends.ErrDenied
	case status == http.StatusForbidden && strings.Contains(text, "ACL not found"), status == http.StatusUnauthorized:
		return "Consul does not know the token; check token_file, CONSUL_HTTP_TOKEN_FILE or CONSUL_HTTP_TOKEN", backends.ErrDenied
	case status == http.StatusForbidden:
		return "the agent's settings forbid the request; see block_endpoints and allow_write_http_from in its http_config", backends.ErrDenied
	case status == http.StatusTooManyRequests:
		return "it asks for fewer requests or connections; see limits.http_max_conns_per_client of the agent, 200 by default, and limits.request_limits of the servers", backends.ErrUnavailable
	case status == http.StatusRequestEntityTooLarge:
		return "raise the agent's limits.kv_max_value_size and limits.txn_max_req_len to their defaults", backends.ErrMisconfigured
	case status == http.StatusInternalServerError && strings.Contains(text, "No path to datacenter"):
		return "check the parameter dc, and that the agent's datacenter is joined to that one (consul members -wan)", backends.ErrUnavailable
	case status == http.StatusBadRequest:
		return "Consul does not take this key; from 1.21.5 on it may refuse names with '..'", backends.ErrMisconfigured
	case status >= 300 && status < 500:
		return "what answers is not Consul's HTTP API, or a proxy; check host and port", backends.ErrMisconfigured
	}
	return look, backends.ErrUnavailable
}

// rule is what a policy needs, after Consul has denied something.
func (b *Backend) rule(denied string) string {
	policy := "write"
	switch {
	case b.base.ReadOnly() && strings.Contains(denied, "key:list"): // with acl.enable_key_list_policy
		policy = "list"
	case b.base.ReadOnly():
		policy = "read"
	}
	return fmt.Sprintf(`key_prefix "%s" { policy = "%s" }`, b.prefix, policy)
}

// handshake reports whether TLS failed for a reason that will not pass.
func handshake(err error) bool {
	_, certificate := as[*tls.CertificateVerificationError](err)
	_, alert := as[tls.AlertError](err)
	_, record := as[tls.RecordHeaderError](err)
	return certificate || record || alert || errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "remote error: tls: ")
}
