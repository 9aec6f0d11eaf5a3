package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elector-go/elector/backends"
)

var (
	errReadOnly     = fmt.Errorf("%w: %s", backends.ErrReadOnly, standby)
	errDeaf         = fmt.Errorf("%w: its listening connection does not get a notification: a transaction pooler cannot carry LISTEN; write listen=false in the URL, or NoListen in the options, or connect without the pooler; until then changes are found by reading alone", backends.ErrUnavailable)
	errNoListen     = fmt.Errorf("%w: listen=false or NoListen was given, or the server cannot notify, so changes are found by reading alone", backends.ErrUnavailable)
	errUnreplicated = fmt.Errorf("%w: the server broke off its wait for a standby, so it is unknown whether the write will survive a failover; look after the standbys in synchronous_standby_names", backends.ErrUnavailable)
)

// standby is the advice about a server that takes no writes.
const standby = "it is a standby, or default_transaction_read_only is on, or a failover is under way; name the primary's host too"

// lockNotAvailable is the SQLSTATE of a statement that would wait too long for a
// lock. The server refuses it, and nothing of it was applied.
const lockNotAvailable = "55P03"

// unreplicated is a key in a connection's custom data.
const unreplicated = "elector: unreplicated"

// OnNotice notes that the server broke off its wait for a standby, so that the
// backend does not take the write for durable. Open installs it. Set it as
// ConnConfig.OnNotice of a pool that you give to [New], or call it from yours;
// otherwise the backend cannot see this warning.
func OnNotice(conn *pgconn.PgConn, n *pgconn.Notice) {
	// The message is translated, and the code is not specific; the name of the
	// function that reports it has not changed since 9.1.
	if n.Routine == "SyncRepWaitForLSN" || strings.Contains(n.Message, "synchronous replication") {
		conn.CustomData()[unreplicated] = true
	}
}

// code returns the SQLSTATE of err, or "".
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// classify is the [backends.Classify] of the backend.
func (b *Backend) classify(err error) (advice string, kind error) {
	state := code(err)
	switch state {
	case "":
		if errors.As(err, new(pgx.ScanArgError)) {
			return "the table was altered while in use", backends.ErrMisconfigured
		}
		return "see whether the server runs and the network leads there", backends.ErrUnavailable
	case "25006":
		return standby, backends.ErrReadOnly
	case "42501":
		return fmt.Sprintf("an administrator can run: grant connect on database %s to %s; %s",
			pgx.Identifier{b.database}.Sanitize(), pgx.Identifier{b.role}.Sanitize(), b.grantSQL()), backends.ErrDenied
	case "3D000":
		return fmt.Sprintf("there is no database %q: correct its name in the URL, which is the user's name if the URL names none, or create it", b.database), backends.ErrMisconfigured
	case "22021", "22P05":
		return "the database cannot store this holder, value or extension: it has a NUL, or a character outside the database's encoding", backends.ErrMisconfigured
	case lockNotAvailable:
		return "another transaction has locked the row, such as a guarded transaction of the former leader: see pg_locks and pg_blocking_pids for which, and pg_stat_activity for sessions that are idle in transaction", backends.ErrUnavailable
	case "57014", "53300":
		return "the server is overloaded or has too small a limit (max_connections, statement_timeout)", backends.ErrUnavailable
	case "08P01":
		if strings.Contains(err.Error(), "startup parameter") {
			return "a pooler refuses a parameter of the URL, such as search_path or options: leave it out and name the schema in the parameter table, as in table=schema.name, or connect without the pooler", backends.ErrMisconfigured
		}
	}
	switch (state + "  ")[:2] {
	case "28":
		return "check user and password, and the server's pg_hba.conf", backends.ErrDenied
	case "3F", "42", "0A":
		return "table " + b.table.quoted() + " was dropped, renamed or altered, or the server is not PostgreSQL: restore the table as it was", backends.ErrMisconfigured
	case "23":
		return "table " + b.table.quoted() + " has a constraint that refuses our records: drop it", backends.ErrMisconfigured
	}
	return "the server cannot serve now; it may pass, and the server's log may say more", backends.ErrUnavailable
}

// withoutConfig removes what the client library wraps around the causes of a
// failed connection: it holds the configuration, with the password.
func withoutConfig(err error) error {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		err = connect.Unwrap()
	}
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		err = parse.Unwrap()
	}
	if err == nil {
		return errors.New("no reason given")
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		// Where TLS is preferred and not required, the library goes on without
		// TLS when a server has none: that is not why it failed.
		err = errors.Join(slices.SortedStableFunc(slices.Values(all.Unwrap()), func(a, b error) int {
			return cmp.Compare(strings.Count(a.Error(), refusedTLS), strings.Count(b.Error(), refusedTLS))
		})...)
	}
	return oneLine{err}
}

const refusedTLS = "server refused TLS connection"

// oneLine shows joined errors, one for each host, on one line of a log.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }
