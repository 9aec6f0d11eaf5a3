package etcd

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elector-go/elector/backends"
)

var errWatchEnded = errors.New("the watch ended without a reason")

// look is the advice for a store that does not answer.
const look = "see whether the servers run and have a leader (etcdctl endpoint status --cluster), whether the network leads there, and whether they speak TLS (etcds://) or not (etcd://)"

// classify is the [backends.Classify] of a backend with the prefix.
func classify(err error, prefix string, readOnly bool) (advice string, kind error) {
	right := "readwrite"
	if readOnly {
		right = "read"
	}
	switch {
	case is(err, rpctypes.ErrAuthFailed):
		return "check user and password", backends.ErrDenied
	case is(err, rpctypes.ErrUserEmpty):
		return "the cluster wants a user and password, or a client certificate; put them into the URL", backends.ErrDenied
	case is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf("an administrator can run: etcdctl role grant-permission ROLE --prefix=true %s '%s'", right, prefix), backends.ErrDenied
	case is(err, rpctypes.ErrInvalidAuthToken), is(err, rpctypes.ErrAuthOldRevision):
		return "the login expired, or users or roles were just changed; the client signs in again", backends.ErrUnavailable
	case is(err, rpctypes.ErrNoSpace):
		return "the database has reached its quota: etcdctl compact, then defrag, then alarm disarm; and switch auto-compaction on", backends.ErrReadOnly
	case is(err, rpctypes.ErrCorrupt):
		return "etcd found its members to differ and has stopped serving: etcdctl alarm list", backends.ErrUnavailable
	case is(err, rpctypes.ErrCompacted):
		return "the watch fell behind a compaction and must be made again", backends.ErrUnavailable
	case is(err, rpctypes.ErrRequestTooLarge):
		return "raise the servers' --max-request-bytes", backends.ErrMisconfigured
	case is(err, rpctypes.ErrTooManyRequests):
		return "the servers are overloaded", backends.ErrUnavailable
	case code(err) == codes.PermissionDenied, code(err) == codes.Unauthenticated:
		return "a proxy before the servers, or the servers, refused the login", backends.ErrDenied
	case code(err) == codes.Unimplemented:
		return "what answers is not etcd with its version 3 API; check host and port", backends.ErrMisconfigured
	case strings.Contains(err.Error(), "error reading server preface: http2: "):
		return "what answers does not speak gRPC: an etcd before version 3, another service, a proxy for HTTP 1, or a server that wants TLS (etcds://); check host and port", backends.ErrUnavailable
	case handshake(err):
		return "TLS with the server failed; check ca, cert, key and server_name, when the certificates end, and whether the server speaks TLS", backends.ErrMisconfigured
	}
	return look, backends.ErrUnavailable
}

// is compares errors by their text, as etcd does: the reason for the end of a
// watch is nothing but text.
func is(err, target error) bool { return strings.HasSuffix(err.Error(), target.Error()) }

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// handshake reports whether TLS failed for a reason that will not pass. gRPC gives
// it as text. A connection that was cut in the middle is not such a reason.
func handshake(err error) bool {
	text := err.Error()
	return (strings.Contains(text, "authentication handshake failed") || strings.Contains(text, "error reading server preface")) &&
		(strings.Contains(text, "x509: ") || strings.Contains(text, "tls: "))
}
