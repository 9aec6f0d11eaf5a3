package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Backend keeps records in one table. Open and New make it.
type Backend struct {
	base      *backends.Base
	db        *sql.DB
	connector *connector // of db
	table     table
	user      string
	options   Options
	exposed   bool        // the server's certificate is not checked, see Inspect
	semiSync  atomic.Bool // the server waits for its replicas, see do
	wsrep     atomic.Bool // the server could be a node of Galera, see unguarded
}

var (
	_ backends.Lister     = (*Backend)(nil)
	_ backends.Inspector  = (*Backend)(nil)
	_ backends.SQLGuarder = (*Backend)(nil)
)

// fields are the columns that hold a record, besides name, schema and term.
var fields = []string{"holder", "token", "ttl", "renew_every", "attempt", "value", "ext"}

// row returns the values of fields. Texts are bytes, which no character set
// changes.
func row(r backends.Record) []any {
	return []any{[]byte(r.Holder), int64(r.Token), int64(r.TTL), int64(r.RenewEvery),
		[]byte(r.Attempt.String()), []byte(r.Value), []byte(r.Extensions)}
}

// term names an acquisition in the index that guards lock, see guard. It begins with a number that falls with each acquisition and release. So
// none of them inserts into the gap before the index entry of another election, which
// a guard at REPEATABLE READ locks too.
func term(r backends.Record) string {
	if r.Vacant() {
		return fmt.Sprintf("%016x", ^(r.Token<<1 + 1))
	}
	return fmt.Sprintf("%016x.%s", ^(r.Token << 1), r.Attempt.Nonce)
}

// Load implements [backends.Backend]. Besides the errors that it documents, Load
// returns ErrReadOnly from a replica, ErrUnavailable from a server that does not
// answer or has fallen back to asynchronous replication, ErrDenied and
// ErrMisconfigured.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (r backends.Record, err error) {
		err = b.do(ctx, func(c *sql.Conn) (err error) {
			r, err = b.read(ctx, c, name)
			return err
		})
		return r, err
	})
}

// readRow joins an election's row to one that always exists and shows whether the
// server takes writes. It takes no lock: see the package comment.
const readRow = "select @@global.read_only, @@global.innodb_read_only, e.name, e.`schema`, e.holder, e.token, e.ttl, e.renew_every, e.attempt, e.value, e.ext" +
	" from (select 1 as one) as o left join %s as e on e.name = ?"

func (b *Backend) read(ctx context.Context, c *sql.Conn, name string) (none backends.Record, err error) {
	var readOnly, engineReadOnly string
	var found, holder, attempt, value, ext *string
	var schema, token, ttl, renewEvery *int64
	err = c.QueryRowContext(ctx, fmt.Sprintf(readRow, b.table.quoted()), []byte(name)).Scan(&readOnly, &engineReadOnly,
		&found, &schema, &holder, &token, &ttl, &renewEvery, &attempt, &value, &ext)
	switch {
	case err != nil:
		return none, err
	case (on(readOnly) || on(engineReadOnly)) && !b.options.ReadOnly:
		return none, errReadOnly
	case found == nil:
		return none, nil
	case schema == nil || holder == nil || token == nil || ttl == nil || renewEvery == nil || attempt == nil || value == nil || ext == nil:
		return none, backends.Foreign("it has a NULL column")
	}
	if err := backends.CheckSchema(strconv.FormatInt(*schema, 10)); err != nil {
		return none, err
	}
	parsed, err := backends.ParseAttempt(*attempt)
	if err != nil {
		return none, backends.Foreign("%v", err)
	}
	r := backends.Record{Holder: *holder, Token: uint64(*token), TTL: time.Duration(*ttl),
		RenewEvery: time.Duration(*renewEvery), Attempt: parsed, Value: *value, Extensions: backends.Extensions(*ext)}
	if err := r.Validate(); err != nil {
		return none, err
	}
	return versioned(name, r), nil
}

// Swap implements [backends.Backend], with the further errors of Load. It is one
// statement, in a transaction of its own.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		next = versioned(name, next)
		args := append(row(next), []byte(term(next)), []byte(name), backends.Schema)
		statement := fmt.Sprintf("insert into %s (%s, term, name, `schema`) values (?%s)", b.table.quoted(), strings.Join(fields, ", "), strings.Repeat(", ?", len(args)-1))
		if prev.Exists() {
			was, err := backends.Decode(name, []byte(prev.Version))
			if err != nil {
				return next, fmt.Errorf("%w (and the version to replace is not one of this election)", backends.ErrConflict)
			}
			args = append(args, row(was)...)
			statement = fmt.Sprintf("update %s set %s = ?, term = ? where name = ? and `schema` = ? and %s = ?", b.table.quoted(), strings.Join(fields, " = ?, "), strings.Join(fields, " = ? and "))
		}
		return next, b.do(ctx, func(c *sql.Conn) error {
			result, err := c.ExecContext(ctx, statement, args...)
			if number(err) == duplicate {
				return backends.ErrConflict
			}
			if err != nil {
				return err
			}
			if rows, err := result.RowsAffected(); err != nil || rows == 0 {
				return backends.ErrConflict
			}
			return nil
		})
	})
}

// versioned sets the record's version, which is all that its row holds. The
// attempt alone would do for our own writes; this also detects edits by hand.
func versioned(name string, r backends.Record) backends.Record {
	r.Version = backends.Version(backends.Encode(name, r))
	return r
}

// List implements [backends.Lister], with the further errors of Load. It is one
// statement.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) (names []string, err error) {
		return names, b.do(ctx, func(c *sql.Conn) error {
			rows, err := c.QueryContext(ctx, "select @@global.read_only, name from "+b.table.quoted())
			if err != nil {
				return err
			}
			defer rows.Close()
			for names = nil; rows.Next(); {
				var readOnly, name string
				if err := rows.Scan(&readOnly, &name); err != nil {
					return err
				}
				if on(readOnly) && !b.options.ReadOnly {
					return errReadOnly
				}
				names = append(names, name)
			}
			return rows.Err()
		})
	})
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), ReadOnly: b.options.ReadOnly}
}

// Close implements [backends.Backend]. It ends the calls under way and closes the
// connections.
func (b *Backend) Close() error {
	return b.base.Close(func() error {
		b.db.Close() // its error is that of a connection that was broken before
		return nil
	})
}
