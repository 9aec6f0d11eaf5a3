// Package fencesql keeps the highest fencing token of each resource in a table, next
// to the data that it protects, in PostgreSQL, MySQL, MariaDB or SQLite. The check is
// a statement of the transaction that writes, so it holds for any number of
// processes, and for elections on any store:
//
//	err := table.Transact(ctx, db, lease, func(tx *sql.Tx) error {
//		... // reads and writes
//	})
//	// ErrStale: stop
//
// In a transaction of your own, call Enter:
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	if err := table.Enter(ctx, tx, "ledger", lease.Token()); err != nil {
//		return err // ErrStale: stop
//	}
//	...
//	return tx.Commit()
//
// Enter must be the first statement of the transaction: it locks the row of the
// resource, so that transactions on one resource run one after the other, and those
// of an old leader come before a new leader's first or not at all. A new leader that
// reads before it writes reads within such a transaction. The tokens of two partitions of
// a group cannot be compared, so each partition is a resource of its own.
//
// A leader that stops in such a transaction holds up its successor until the database
// ends it. Transact bounds that on PostgreSQL and MySQL. With Enter, bound it on the
// server: with idle_in_transaction_session_timeout on PostgreSQL,
// idle_write_transaction_timeout on MariaDB, wait_timeout on MySQL.
//
// Both hold at every isolation level. At REPEATABLE READ and SERIALIZABLE
// PostgreSQL fails transactions that run at the same time with a serialization error
// (40001); its default READ COMMITTED lets them wait. On MySQL the first two
// transactions of a resource can meet in a deadlock (1213). Begin such a transaction
// again, as any other: the error is the driver's, wrapped. On SQLite set a busy_timeout.
// On MySQL every table must be an InnoDB one: others have no transactions.
package fencesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/elector-go/elector"
)

// A Dialect is how a database writes its statements.
type Dialect int

// The dialects.
const (
	PostgreSQL Dialect = iota
	MySQL              // and MariaDB
	SQLite
)

var dialects = []string{PostgreSQL: "PostgreSQL", MySQL: "MySQL", SQLite: "SQLite"}

// A Table keeps the highest token of each resource in a table with the columns
// resource (the key), token and writes. Many goroutines may call its methods.
type Table struct {
	dialect          Dialect
	name             string
	raise, add, look string // statements
	bound            string // added to raise and add, with its own parameter

	without atomic.Pointer[absence] // the last that Transact has found
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// New returns a Table of the given name, which may have a schema before a dot. It
// does no I/O. It returns ErrInvalid for a name that is no plain identifier.
func New(dialect Dialect, name string) (*Table, error) {
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("fencesql: %w: %.80q is not a table name of ASCII letters, digits and underscores", elector.ErrInvalid, name)
	}
	// The counter makes each write a change: MySQL counts no row that stays as it
	// was.
	t := &Table{
		dialect: dialect, name: name,
		raise: "update " + name + " set token = ?, writes = writes + 1 where resource = ? and token <= ?",
		add:   "insert into " + name + " (token, resource, writes) values (?, ?, 1) on conflict do nothing",
		look:  "select token from " + name + " where resource = ?",
	}
	switch dialect {
	case PostgreSQL:
		t.bound = " returning set_config('idle_in_transaction_session_timeout', $%d, true)"
		for _, statement := range []*string{&t.raise, &t.add, &t.look} {
			for n := 1; strings.Contains(*statement, "?"); n++ {
				*statement = strings.Replace(*statement, "?", fmt.Sprintf("$%d", n), 1)
			}
		}
	case MySQL:
		t.add = "insert ignore into " + name + " (token, resource, writes) values (?, ?, 1)"
		t.look += " for update" // sees what was committed after the transaction began
	case SQLite:
	default:
		return nil, fmt.Errorf("fencesql: %w: unknown dialect %d", elector.ErrInvalid, dialect)
	}
	return t, nil
}

// CreateSQL returns the statement that creates the table if it is missing.
func (t *Table) CreateSQL() string {
	key, engine := "text", ""
	if t.dialect == MySQL { // a text cannot be a key, and a varchar ignores spaces at its end
		key, engine = fmt.Sprintf("varbinary(%d)", longest), " engine = InnoDB"
	}
	return "create table if not exists " + t.name + " (resource " + key + " primary key, token bigint not null, writes bigint not null)" + engine
}

// longest is the length of the longest name of a resource, in bytes.
const longest = 255

// Enter refuses the token with ErrStale, as an *elector.StaleError, if a higher one
// has entered; otherwise it keeps the token with the transaction. It is one
// statement, and up to two more for a resource's first token or a refusal. It waits
// for other transactions that have entered the resource. After an error the
// transaction must be rolled back. Enter returns ErrInvalid for a token that is
// none, and for a resource of more than 255 bytes or that is not UTF-8 or contains a
// NUL; other errors wrap the database's.
func (t *Table) Enter(ctx context.Context, tx *sql.Tx, resource string, token elector.Token) error {
	return t.enter(ctx, tx, resource, token, 0)
}

// enter is Enter. On PostgreSQL the server then ends the transaction if it stands idle
// for so long, 0 for as long as it is set to.
func (t *Table) enter(ctx context.Context, tx *sql.Tx, resource string, token elector.Token, idle time.Duration) error {
	switch {
	case token == 0 || token > elector.MaxToken:
		return fmt.Errorf("fencesql: %w: %d is not a fencing token", elector.ErrInvalid, uint64(token))
	case len(resource) > longest || !utf8.ValidString(resource) || strings.Contains(resource, "\x00"):
		return fmt.Errorf("fencesql: %w: %.80q is not a name of a resource: at most %d bytes of UTF-8 without NUL", elector.ErrInvalid, resource, longest)
	}
	change := func(statement string, args ...any) (bool, error) {
		if idle > 0 && t.bound != "" {
			args = append(args, strconv.FormatInt(max(idle.Milliseconds(), 1), 10)) // 0 would be for ever
			statement += fmt.Sprintf(t.bound, len(args))
		}
		return t.change(ctx, tx, statement, args...)
	}
	for range 2 {
		if changed, err := change(t.raise, int64(token), resource, int64(token)); err != nil || changed {
			return err
		}
		if changed, err := change(t.add, int64(token), resource); err != nil || changed {
			return err
		}
		var highest elector.Token
		if err := tx.QueryRowContext(ctx, t.look, resource).Scan(&highest); err != nil {
			return fmt.Errorf("fencesql: reading the token of %q in table %s: %w", resource, t.name, err)
		}
		if highest > token {
			return &elector.StaleError{Resource: resource, Token: token, Highest: highest}
		}
		// Another transaction has just added the row.
	}
	return fmt.Errorf("fencesql: table %s has a row of %q that it neither raises nor refuses; is it a plain table, as CreateSQL makes it?", t.name, resource)
}

func (t *Table) change(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err == nil {
		var n int64
		if n, err = result.RowsAffected(); err == nil {
			return n > 0, nil
		}
	}
	return false, fmt.Errorf("fencesql: entering by table %s: %w", t.name, err)
}

// Keeper returns a Keeper for an [elector.Fence] in front of another resource,
// which keeps the tokens in this table. It makes one transaction for each new
// token.
func (t *Table) Keeper(db *sql.DB) elector.Keeper { return keeper{t, db} }

type keeper struct {
	*Table
	db *sql.DB
}

// Raise implements [elector.Keeper].
func (k keeper) Raise(ctx context.Context, resource string, token elector.Token) (elector.Token, error) {
	tx, err := k.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("fencesql: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	var stale *elector.StaleError
	switch err := k.Enter(ctx, tx, resource, token); {
	case errors.As(err, &stale):
		return stale.Highest, nil
	case err != nil:
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("fencesql: %w", err)
	}
	return token, nil
}
