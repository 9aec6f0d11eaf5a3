package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elector-go/elector/backends"
)

var (
	errClosed       = fmt.Errorf("%w: the handle is closed", backends.ErrUnavailable)
	errReadOnly     = fmt.Errorf("%w: it is a standby, or default_transaction_read_only is on; name the primary's host too", backends.ErrReadOnly)
	errDeaf         = fmt.Errorf("%w: a notification that was sent to it does not arrive: a transaction pooler cannot carry LISTEN; write listen=false in the URL, or NoListen in the options, or connect without the pooler; until then changes are found by reading alone", backends.ErrUnavailable)
	errUnreplicated = errors.New("the server broke off its wait for a standby: whether the write will survive a failover is unknown; look after the standbys in synchronous_standby_names")
)

// lockNotAvailable is the SQLSTATE of a statement that would wait too long for a
// lock. It is refused, and nothing of it was applied.
const lockNotAvailable = "55P03"

// unreplicated is a key in a connection's custom data.
const unreplicated = "elector: unreplicated"

// OnNotice notes that the server broke off its wait for a standby, so that the
// write is not taken for durable. Open installs it. A pool that is given to
// [New] should have it as its ConnConfig.OnNotice, or call it from there;
// otherwise this warning cannot be seen.
func OnNotice(conn *pgconn.PgConn, n *pgconn.Notice) {
	// The message is translated and the code is none of its own; the name of
	// the function that reports it has not changed since 9.1.
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

// explain returns err, which was met while doing something, as one of package
// backends' errors with what to do about it.
func (b *Backend) explain(ctx context.Context, doing string, err error) error {
	if b.life.Err() != nil {
		return errClosed
	}
	advice, kind := b.classify(ctx, err)
	cause := withoutConfig(err)
	if ctx.Err() != nil && !errors.Is(cause, ctx.Err()) {
		cause = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	if kind == nil {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	return fmt.Errorf("%s: %w: %s: %w", doing, kind, advice, cause)
}

func (b *Backend) classify(ctx context.Context, err error) (advice string, kind error) {
	state := code(err)
	switch {
	case errors.Is(err, backends.ErrReadOnly), errors.Is(err, errUnreplicated), errors.Is(err, errDeaf):
		return "", nil
	case errors.As(err, new(pgx.ScanArgError)):
		return "the table was altered while in use", backends.ErrMisconfigured
	case state == "" && errors.Is(ctx.Err(), context.Canceled):
		return "", nil
	case state == "":
		return "see whether the server runs and the network leads there", backends.ErrUnavailable
	}
	switch state {
	case "25006":
		return "a failover may be under way", errReadOnly
	case "42501":
		return fmt.Sprintf("an administrator can run: grant connect on database %s to %s; %s",
			pgx.Identifier{b.database}.Sanitize(), pgx.Identifier{b.role}.Sanitize(), b.table.grantSQL(b.role)), backends.ErrDenied
	case "3D000":
		return "create the database, or correct its name in the URL", backends.ErrMisconfigured
	case "22021", "22P05":
		return "the database cannot store this holder, value or extension: it has a NUL, or a character outside the database's encoding", backends.ErrMisconfigured
	case lockNotAvailable:
		return "another transaction has locked the row: see pg_locks and pg_blocking_pids for which, and pg_stat_activity for sessions that are idle in transaction", backends.ErrUnavailable
	case "57014", "53300":
		return "the server is overloaded or has too small a limit (max_connections, statement_timeout)", backends.ErrUnavailable
	}
	if state == "08P01" && strings.Contains(err.Error(), "startup parameter") {
		return "a pooler refuses a parameter of the URL, search_path or options say: leave it out and name the schema in the parameter table, as in table=schema.name, or connect without the pooler", backends.ErrMisconfigured
	}
	switch (state + "  ")[:2] {
	case "28":
		return "check user and password, and the server's pg_hba.conf", backends.ErrDenied
	case "3F", "42", "0A":
		return "table " + b.table.quoted() + " was dropped, renamed or altered, or the server is not PostgreSQL: restore the table as it was", backends.ErrMisconfigured
	case "23":
		return "table " + b.table.quoted() + " has a constraint that refuses our records: drop it", backends.ErrMisconfigured
	case "08", "40", "53", "55", "57":
		return "the server cannot serve now; it may pass", backends.ErrUnavailable
	}
	return "", nil
}

// withoutConfig takes away what the client library wraps around the causes of
// a failed connection: it holds the configuration, with the password.
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
		// Where TLS is preferred and not demanded, the library goes on without
		// it when a server has none: that is not why it failed.
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
