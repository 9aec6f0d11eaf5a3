package etcd

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elector-go/elector/backends"
)

func TestClassify(t *testing.T) {
	unavailable := func(text string) error { return status.Error(codes.Unavailable, text) }
	for _, test := range []struct{ err, want error }{
		{rpctypes.ErrAuthFailed, backends.ErrDenied},
		{rpctypes.ErrGRPCAuthFailed, backends.ErrDenied},
		{rpctypes.ErrUserEmpty, backends.ErrDenied},
		{rpctypes.ErrPermissionDenied, backends.ErrDenied},
		{errors.New(rpctypes.ErrGRPCPermissionDenied.Error()), backends.ErrDenied}, // as a watch says it
		{status.Error(codes.Unauthenticated, "proxy says no"), backends.ErrDenied},
		{rpctypes.ErrInvalidAuthToken, backends.ErrUnavailable},
		{rpctypes.ErrAuthOldRevision, backends.ErrUnavailable},
		{rpctypes.ErrNoSpace, backends.ErrReadOnly},
		{rpctypes.ErrCorrupt, backends.ErrUnavailable},
		{rpctypes.ErrCompacted, backends.ErrUnavailable},
		{rpctypes.ErrTooManyRequests, backends.ErrUnavailable},
		{rpctypes.ErrRequestTooLarge, backends.ErrMisconfigured},
		{rpctypes.ErrNoLeader, backends.ErrUnavailable},
		{rpctypes.ErrLeaderChanged, backends.ErrUnavailable},
		{rpctypes.ErrTimeout, backends.ErrUnavailable},
		{status.Error(codes.Unimplemented, "unknown service"), backends.ErrMisconfigured},
		{unavailable("connection refused"), backends.ErrUnavailable},
		{unavailable("authentication handshake failed: tls: failed to verify certificate: x509: certificate has expired"), backends.ErrMisconfigured},
		{unavailable("error reading server preface: remote error: tls: certificate required"), backends.ErrMisconfigured},
		{unavailable("authentication handshake failed: EOF"), backends.ErrUnavailable},
		{unavailable("error reading from server: local error: tls: bad record MAC"), backends.ErrUnavailable},
		{errWatchEnded, backends.ErrUnavailable},
		{errors.New("something new"), backends.ErrUnavailable},
	} {
		advice, kind := classify(test.err, "/elector/", false)
		if kind != test.want {
			t.Errorf("%v: got %v, want %v", test.err, kind, test.want)
		}
		if advice == "" {
			t.Errorf("%v: no word of what to do", test.err)
		}
		// What went through the interceptor is told just as well.
		if _, kind := classify(once(t.Context(), test.err), "/elector/", false); kind != test.want {
			t.Errorf("%v, sent once: got %v, want %v", test.err, kind, test.want)
		}
	}
}

func TestAdviceNamesThePrefix(t *testing.T) {
	for readOnly, want := range map[bool]string{false: "--prefix=true readwrite '/x/'", true: "--prefix=true read '/x/'"} {
		if advice, _ := classify(rpctypes.ErrPermissionDenied, "/x/", readOnly); !strings.Contains(advice, want) {
			t.Errorf("%q does not say which permission to grant", advice)
		}
	}
}
