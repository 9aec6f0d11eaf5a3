// Package fencesql keeps the highest fencing token of each resource in a table, next
// to the data that it protects, in PostgreSQL, MySQL, MariaDB or SQLite. The check is
// a statement of the transaction that writes, so it holds for any number of
// processes, and for elections on any store:
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	if err := fence.Enter(ctx, tx, "ledger", lease.Token()); err != nil {
//		return err // ErrStale: stop
//	}
//	...
//	return tx.Commit()
//
// Enter must be the first statement of the transaction: it locks the row of the
// resource, so that transactions on one resource run one after the other, and those
// of an old leader come before a new leader's first or not at all. A new leader that
// reads before it writes reads within such a transaction.
package fencesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"

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

// A Table keeps the highest token of each resource in a table with the columns
// resource (the key), token and writes.
type Table struct {
	dialect Dialect
	name    string
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// New returns a Table of the given name, which may have a schema before a dot. It
// does no I/O. It returns ErrInvalid for a name that is no plain identifier.
func New(dialect Dialect, name string) (*Table, error) {
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("fencesql: %w: %.80q is not a table name of ASCII letters, digits and underscores", elector.ErrInvalid, name)
	}
	if dialect < PostgreSQL || dialect > SQLite {
		return nil, fmt.Errorf("fencesql: %w: unknown dialect %d", elector.ErrInvalid, dialect)
	}
	return &Table{dialect, name}, nil
}

// CreateSQL returns the statement that creates the table if it is missing.
func (t *Table) CreateSQL() string {
	key := "text"
	if t.dialect == MySQL {
		key = "varchar(191) character set utf8mb4 collate utf8mb4_bin" // a text cannot be a key
	}
	return "create table if not exists " + t.name + " (resource " + key + " primary key, token bigint not null, writes bigint not null)"
}

// Enter refuses the token with ErrStale, as an *elector.StaleError, if a higher one
// has entered; otherwise it keeps the token with the transaction. It is one
// statement, and up to two more for a resource's first token or a refusal. It waits
// for other transactions that have entered the resource. After an error the
// transaction must be rolled back. For a token that is none Enter returns
// ErrInvalid.
func (t *Table) Enter(ctx context.Context, tx *sql.Tx, resource string, token elector.Token) error {
	if token == 0 || token > elector.MaxToken {
		return fmt.Errorf("fencesql: %w: %d is not a fencing token", elector.ErrInvalid, uint64(token))
	}
	// The counter makes each write a change: MySQL counts no row that stays as it
	// was.
	raise := "update " + t.name + " set token = ?, writes = writes + 1 where resource = ? and token <= ?"
	add := "insert into " + t.name + " (resource, token, writes) values (?, ?, 1) on conflict do nothing"
	look := "select token from " + t.name + " where resource = ?"
	switch t.dialect {
	case PostgreSQL:
		raise = "update " + t.name + " set token = $1, writes = writes + 1 where resource = $2 and token <= $3"
		add = "insert into " + t.name + " (resource, token, writes) values ($1, $2, 1) on conflict do nothing"
		look = "select token from " + t.name + " where resource = $1"
	case MySQL:
		add = "insert ignore into " + t.name + " (resource, token, writes) values (?, ?, 1)"
		look += " for update" // reads what is committed now, not at the begin
	}
	for range 2 {
		if changed, err := t.change(ctx, tx, raise, int64(token), resource, int64(token)); err != nil || changed {
			return err
		}
		if changed, err := t.change(ctx, tx, add, resource, int64(token)); err != nil || changed {
			return err
		}
		var highest int64
		if err := tx.QueryRowContext(ctx, look, resource).Scan(&highest); err != nil {
			return fmt.Errorf("fencesql: reading the token of %q: %w", resource, err)
		}
		if elector.Token(highest) > token {
			return &elector.StaleError{Resource: resource, Token: token, Highest: elector.Token(highest)}
		}
		// Another transaction has just added the row.
	}
	return fmt.Errorf("fencesql: the token of %q changes without a lock; is the table a plain one?", resource)
}

func (t *Table) change(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, fmt.Errorf("fencesql: %s: %w", t.name, err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
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
		return 0, err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := k.Enter(ctx, tx, resource, token); err != nil {
		var stale *elector.StaleError
		if errors.As(err, &stale) {
			return stale.Highest, nil
		}
		return 0, err
	}
	return token, tx.Commit()
}
