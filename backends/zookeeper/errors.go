package zookeeper

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zkconn"
)

var (
	errLost      = fmt.Errorf("%w: the connection was lost, and the watch with it; it has to be made again", backends.ErrUnavailable)
	errUnguarded = fmt.Errorf("%w: the record's child guard-... is missing: a deletion of the record is under way or stopped halfway, or an old state of it was put back by hand; delete it with deleteall in zkCli.sh", backends.ErrUnavailable)
)

// classify is the [backends.Classify] of a backend with the prefix.
func classify(err error, prefix string, readOnly bool) (advice string, kind error) {
	switch {
	case errors.Is(err, zk.ErrNoAuth) && readOnly:
		return fmt.Sprintf("start the candidates with readable=true in their URL, or give their user and password; for znodes that exist, their user can run in zkCli.sh: addauth digest USER:PASSWORD, then setAcl -R %s auth::cdrwa,world:anyone:r", prefix), backends.ErrDenied
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Sprintf("user and password are wrong, or another user created the znodes; a user with the permission can run in zkCli.sh: addauth digest USER:PASSWORD, then setAcl -R %s auth::cdrwa", prefix), backends.ErrDenied
	case errors.Is(err, zk.ErrAuthFailed), numbered(err, -124):
		return "the servers refuse the login, or require one; check user, password and the servers' authProvider", backends.ErrDenied
	case errors.Is(err, zk.ErrInvalidPath):
		return fmt.Sprintf("%q is not a valid path of a znode", prefix), backends.ErrURL
	case errors.Is(err, zk.ErrInvalidACL):
		return "the servers do not accept the access control list; digest may be switched off there, or, for New, the connection has no login", backends.ErrMisconfigured
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Sprintf("%s, or a znode above or below it, is ephemeral and can have no children; delete it or name another path", prefix), backends.ErrMisconfigured
	case errors.Is(err, zk.ErrNotEmpty):
		return "the leader's node or the guard, which are children of the election's znode, has children itself, so it was changed by hand; delete those in zkCli.sh", backends.ErrMisconfigured
	case numbered(err, -125):
		return fmt.Sprintf("a quota is exceeded; run in zkCli.sh: listquota %s", prefix), backends.ErrMisconfigured
	case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrSessionMoved):
		return "the session has expired, or moved to another server; the client makes another", backends.ErrUnavailable
	case errors.Is(err, zkconn.ErrProtocol):
		return "check host and port, and whether it speaks TLS (zookeepers://) or not (zookeeper://)", backends.ErrMisconfigured
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)), errors.As(err, new(tls.AlertError)):
		return "TLS with the server failed; check ca, cert, key and server_name, when the certificates end, and whether the port speaks TLS (secureClientPort)", backends.ErrMisconfigured
	}
	return "see whether the servers run and have a leader (srvr, or zkServer.sh status), and whether the network leads there", backends.ErrUnavailable
}

// numbered recognises errors that the client library has no name for.
func numbered(err error, code int) bool {
	return strings.HasSuffix(err.Error(), fmt.Sprintf("unknown error: %d", code))
}
