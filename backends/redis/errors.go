package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
)

var errNotRedis = fmt.Errorf("%w: what answers is neither Redis nor Valkey; check host and port", backends.ErrMisconfigured)

// answered reports whether an error is the server's answer.
func answered(err error) bool {
	var answer goredis.Error
	return errors.As(err, &answer)
}

// is reports whether an error is the server's answer with one of these first words.
func is(err error, words ...string) bool {
	var answer goredis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, word := range words {
		if strings.HasPrefix(answer.Error(), word) {
			return true
		}
	}
	return false
}

// classify is the [backends.Classify] of the backend.
func (b *Backend) classify(err error) (advice string, kind error) {
	switch {
	case is(err, "WRONGPASS", "NOAUTH", "ERR AUTH", "ERR invalid password"):
		return "check user and password", backends.ErrDenied
	case is(err, "NOPERM", "ERR The user executing the script can't"): // of the whole script, or of a command in it
		return "an administrator can run: " + b.grant(), backends.ErrDenied
	case is(err, "READONLY", "MASTERDOWN"):
		return replicaAdvice, backends.ErrReadOnly
	case is(err, "ELECTORREPLICAS"):
		return "nothing was written: a replica is, or was, connected, or the server was promoted: a failover loses acknowledged writes; use one server without replicas, elector doctor shows more" + orLossy, backends.ErrMisconfigured
	case is(err, "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN"):
		return "it is a Cluster, which loses acknowledged writes at a failover; use one server", backends.ErrMisconfigured
	case is(err, "ERR unknown command", "ERR DB index", "ERR invalid DB", "DENIED"):
		return "check host, port and database: this package needs Redis 6 or Valkey with scripts", backends.ErrMisconfigured
	case is(err, "OOM"):
		return "nothing was written: its memory is full; raise maxmemory", backends.ErrUnavailable
	case is(err, "MISCONF", "NOREPLICAS"):
		return "nothing was written: the server refuses writes, see its log", backends.ErrUnavailable
	case is(err, "LOADING", "BUSY", "ERR max number of clients"):
		return "nothing was written: the server is busy", backends.ErrUnavailable
	case answered(err):
		return "the server cannot serve now; its log may say more", backends.ErrUnavailable
	case handshake(err):
		return "TLS with the server failed; check ca, cert, key and server_name, when the certificates end, and whether the server speaks TLS (rediss://) or not (redis://)", backends.ErrMisconfigured
	case strings.HasPrefix(err.Error(), "redis: can't parse"), strings.HasPrefix(err.Error(), "redis: unexpected"):
		return "what answers is neither Redis nor Valkey; check host and port", backends.ErrMisconfigured
	}
	return "see whether the server runs and the network leads there", backends.ErrUnavailable
}

// handshake reports whether TLS failed for a reason that will not pass.
func handshake(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.AlertError)) || errors.As(err, new(tls.RecordHeaderError)) || strings.Contains(err.Error(), "remote error: tls: ")
}

// grant is the command that gives a user what the handle needs.
func (b *Backend) grant() string {
	user := b.user
	if user == "" {
		user = "USER"
	}
	p := b.options.Prefix
	if b.options.ReadOnly {
		return fmt.Sprintf("ACL SETUSER %s '%%R~%s*' '&%s' +get +scan +subscribe +ping", user, p, p)
	}
	return fmt.Sprintf("ACL SETUSER %s '~%s*' '&%s' +get +set +eval +evalsha +publish +subscribe +scan +ping +info +config|get", user, p, p)
}
