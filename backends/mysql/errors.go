package mysql

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
)

var (
	errReadOnly     = fmt.Errorf("%w: %s", backends.ErrReadOnly, replica)
	errAutocommit   = fmt.Errorf("%w: autocommit is off, so no write would be committed: do not switch it off in the configuration or in a proxy", backends.ErrMisconfigured)
	errGalera       = fmt.Errorf("%w: the server is a node of a Galera cluster (wsrep_on), which loses updates when several nodes are written to; use another store, or write one_node=true if all processes use one and the same node", backends.ErrMisconfigured)
	errMultiPrimary = fmt.Errorf("%w: the server is in a replication group with several primaries; switch group_replication_single_primary_mode on, or write one_node=true if all processes use one and the same server", backends.ErrMisconfigured)
	errAsync        = fmt.Errorf("%w: the server's semi-synchronous replication has fallen back to asynchronous, so it is unknown whether its last writes will survive a failover; look after the replicas, or write allow_async=true to accept that", backends.ErrUnavailable)
)

// replica is the advice about a server that takes no writes.
const replica = "it is a replica, or read_only is on, or a failover is under way, or a proxy sends reads to a replica; name the primary's host too"

// duplicate is the error number of an INSERT whose key exists.
const duplicate = 1062

// number returns the server's error number, or 0.
func number(err error) uint16 {
	var e *gomysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// classify is the [backends.Classify] of the backend. Numbers are those that both
// MySQL and MariaDB have, unless noted.
func (b *Backend) classify(err error) (advice string, kind error) {
	switch number(err) {
	case 0:
		return b.classifyOther(err)

	// Not applied, and it will not help to try again.
	case 1044, 1142, 1143, 1227:
		return "an administrator can run: " + b.grantSQL(), backends.ErrDenied
	case 1045, 1130, 1251, 1275, 1698, 1820, 1862, 3118, 3159, 3955, 4151:
		return "check user and password, and from where and how (TLS) the account may connect", backends.ErrDenied
	case 1049:
		return "create the database, or correct its name in the URL", backends.ErrMisconfigured
	case 1054, 1064, 1146, 1176, 1193, 1906, 1932, 3105:
		return "table " + b.table.quoted() + " was dropped, renamed or altered, or the server is neither MySQL nor MariaDB: restore the table as it was", backends.ErrMisconfigured
	case 1048, 1264, 1364, 1366, 1406, 1452, 1644, 3819, 4025:
		return "table " + b.table.quoted() + " has a constraint or a trigger that refuses our records: drop it", backends.ErrMisconfigured

	// Not applied, and it may pass.
	case 1290, 1792, 1836:
		return replica, backends.ErrReadOnly
	case 1205:
		return "nothing was written: another transaction has locked the row, such as a guarded transaction of the former leader; see information_schema.innodb_trx for which", backends.ErrUnavailable
	case 1020, 1213, 3101, 3572:
		return "nothing was written: the server rolled the statement back, because of a deadlock or of a write on another server", backends.ErrUnavailable
	case 1040, 1129, 1203, 1226:
		return "nothing was written: the server or the account has too many connections, or made too many requests (max_connections, max_user_connections)", backends.ErrUnavailable
	case 1047:
		return "nothing was written: the node has no contact with the rest of its cluster", backends.ErrUnavailable

	// It may have been applied.
	case 1053, 1180, 1317, 1927, 1969, 3024:
		return "the server ended the statement or its connection, so it is unknown whether a write was made", backends.ErrUnavailable
	}
	return "the server cannot serve now; it may pass, and the server's log may say more", backends.ErrUnavailable
}

// classifyOther is for errors that no server reported.
func (b *Backend) classifyOther(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, gomysql.ErrNoTLS), handshake(err):
		return "TLS with the server failed; check ca, cert, key and server_name, when the certificates end, and whether the server speaks TLS (mysqls://) or not (mysql://)", backends.ErrMisconfigured
	case errors.Is(err, gomysql.ErrUnknownPlugin), errors.Is(err, gomysql.ErrOldPassword), errors.Is(err, gomysql.ErrCleartextPassword), errors.Is(err, gomysql.ErrNativePassword):
		return "the account's authentication plugin cannot be used; change it, use mysqls://, or allow the plugin in the configuration for New", backends.ErrDenied
	case errors.Is(err, gomysql.ErrMalformPkt), errors.Is(err, gomysql.ErrPktSync), errors.Is(err, gomysql.ErrOldProtocol):
		return "what answers is neither MySQL nor MariaDB; check host and port", backends.ErrMisconfigured
	case errors.Is(err, gomysql.ErrInvalidConn):
		return "the connection was lost, so it is unknown whether a write was made; see whether the server runs and the network leads there", backends.ErrUnavailable
	}
	return "see whether the server runs and the network leads there", backends.ErrUnavailable
}

// handshake reports whether TLS failed for a reason that will not pass.
func handshake(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.AlertError)) || errors.As(err, new(tls.RecordHeaderError)) || strings.Contains(err.Error(), "remote error: tls: ")
}

// oneLine shows joined errors, one for each host, on one line of a log.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }
