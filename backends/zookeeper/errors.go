package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

var (
	errClosed    = fmt.Errorf("%w: the handle is closed", backends.ErrUnavailable)
	errLost      = fmt.Errorf("%w: the connection was lost, and with it the watch; it must be made again", backends.ErrUnavailable)
	errUnguarded = fmt.Errorf("%w: the record's child guard-... is missing; somebody is deleting the record, or stopped halfway: in zkCli.sh, run deleteall on it to the end", backends.ErrUnavailable)
)

// explain returns err, which was met while doing something, as one of package
// backends' errors with what to do.
func (b *Backend) explain(ctx context.Context, doing string, err error) error {
	switch {
	case ours(err):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w: no answer in time; %s: %w", doing, backends.ErrUnavailable, look, ctx.Err())
	case b.session.life.Err() != nil:
		return fmt.Errorf("%s: %w", doing, errClosed)
	}
	advice, kind := classify(err, b.prefix)
	return fmt.Errorf("%s: %w: %s: %w", doing, kind, advice, err)
}

// ours reports whether err is one of package backends' already.
func ours(err error) bool {
	for _, kind := range []error{backends.ErrForeignRecord, backends.ErrUnavailable, backends.ErrDeposed, backends.ErrMisconfigured} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// look is what to do about a store that gives no answer.
const look = "see whether the servers run and have a leader (srvr, or zkServer.sh status), and whether the network leads there"

// classify tells what kind of error of package backends err is, and what to do.
// Whatever is not known may pass: the elector tries again and nobody leads on
// a guess.
func classify(err error, prefix string) (advice string, kind error) {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Sprintf("user and password are wrong, or another user made the znodes; in zkCli.sh somebody who may can run: addauth digest USER:PASSWORD, then setAcl -R %s auth::cdrwa", prefix), backends.ErrDenied
	case errors.Is(err, zk.ErrAuthFailed), numbered(err, -124):
		return "the servers refuse the login, or want one; check user, password and the servers' authProvider", backends.ErrDenied
	case errors.Is(err, zk.ErrInvalidPath):
		return fmt.Sprintf("the path %q names no znode", prefix), backends.ErrURL
	case errors.Is(err, zk.ErrInvalidACL):
		return "the servers do not take the access control list; digest may be switched off there, or, for New, the connection has no login", backends.ErrMisconfigured
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Sprintf("%s, or a znode above or below it, is ephemeral and can have no children; delete it or name another path", prefix), backends.ErrMisconfigured
	case errors.Is(err, zk.ErrNotEmpty):
		return "the holder's node has children, so somebody made it by hand; in zkCli.sh, deleteall it", backends.ErrMisconfigured
	case numbered(err, -125):
		return fmt.Sprintf("a quota is exceeded; in zkCli.sh, listquota %s", prefix), backends.ErrMisconfigured
	case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrSessionMoved):
		return "the session has expired, or moved to another server; the client makes another", backends.ErrUnavailable
	}
	return look, backends.ErrUnavailable
}

// numbered tells errors that the client library has no name for.
func numbered(err error, code int) bool {
	return strings.HasSuffix(err.Error(), fmt.Sprintf("unknown error: %d", code))
}
