package consul

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

func TestClassify(t *testing.T) {
	b := newFake().backend()
	for _, test := range []struct{ err, want error }{
		{&statusError{403, `Permission denied: token with AccessorID '1' lacks permission 'key:read' on "elector/a"`}, backends.ErrDenied},
		{&statusError{403, "ACL not found"}, backends.ErrDenied},
		{&statusError{403, "Endpoint is blocked by agent configuration"}, backends.ErrDenied},
		{&statusError{401, "ACL support disabled"}, backends.ErrDenied},
		{&refusal{[]refused{{0, "Permission denied"}}}, backends.ErrDenied},
		{&refusal{[]refused{{0, "something new"}}}, backends.ErrUnavailable},
		{&statusError{429, "Your IP is issuing too many concurrent connections, please rate limit your calls"}, backends.ErrUnavailable},
		{&statusError{500, "No cluster leader"}, backends.ErrUnavailable},
		{&statusError{500, "No path to datacenter"}, backends.ErrUnavailable},
		{&statusError{500, "rpc error making call: leadership lost while committing log"}, backends.ErrUnavailable},
		{&statusError{500, "rpc error making call: Permission denied"}, backends.ErrUnavailable},
		{&statusError{503, ""}, backends.ErrUnavailable},
		{&statusError{413, "Value for key \"a\" is too large (4 > 3 bytes)"}, backends.ErrMisconfigured},
		{&statusError{400, "Client sent an HTTP request to an HTTPS server."}, backends.ErrMisconfigured},
		{&statusError{400, "invalid key name"}, backends.ErrMisconfigured},
		{&statusError{307, ""}, backends.ErrMisconfigured},
		{&statusError{405, "method PUT not allowed"}, backends.ErrMisconfigured},
		{errNotConsul, backends.ErrMisconfigured},
		{errTokenFile, backends.ErrUnavailable},
		{errSilent, backends.ErrUnavailable},
		{errWentBack, backends.ErrUnavailable},
		{http.ErrSchemeMismatch, backends.ErrMisconfigured},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, backends.ErrMisconfigured},
		{tls.RecordHeaderError{}, backends.ErrMisconfigured},
		{errors.New("remote error: tls: certificate required"), backends.ErrMisconfigured},
		{errors.New("connection refused"), backends.ErrUnavailable},
	} {
		advice, kind := b.classify(test.err)
		if kind != test.want {
			t.Errorf("%v: got %v, want %v", test.err, kind, test.want)
		}
		if advice == "" {
			t.Errorf("%v: no word of what to do", test.err)
		}
	}
	reader := made(New(t.Context(), &http.Client{}, &Options{Address: "http://h:8500", ReadOnly: true}))
	for b, rule := range map[*Backend]string{b: `key_prefix "elector/" { policy = "write" }`, reader: `key_prefix "elector/" { policy = "read" }`} {
		if advice, _ := b.classify(&statusError{403, "Permission denied"}); !strings.Contains(advice, rule) {
			t.Errorf("%q does not name the rule", advice)
		}
	}
}

// An answer shows its first line, and not more of it than a person reads.
func TestStatusError(t *testing.T) {
	for content, want := range map[string]string{
		"":                       "500 Internal Server Error",
		"\nNo leader\nmore":      "500 Internal Server Error: No leader",
		strings.Repeat("x", 999): "500 Internal Server Error: " + strings.Repeat("x", 300),
	} {
		if got := (answer{status: 500, content: []byte(content)}).failure().Error(); got != want {
			t.Errorf("%.20q: got %q, want %q", content, got, want)
		}
	}
}
