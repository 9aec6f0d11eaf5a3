package raw

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	_ "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
)

// A mySQLRecords has a row of the table elector for each record. It shows them as
// JSON.
type mySQLRecords struct{ db *sql.DB }

func openMySQL(_ context.Context, u *url.URL) (Records, func() error, error) {
	password, _ := u.User.Password()
	db, err := sql.Open("mysql", u.User.Username()+":"+password+"@tcp("+u.Host+")/"+strings.Trim(u.Path, "/"))
	if err != nil {
		return nil, nil, errors.New("the URL is not one of MySQL") // its error may hold a password
	}
	return mySQLRecords{db}, db.Close, nil
}

// A mySQLRow is what the columns hold. Term is of the index that guards lock; what is
// edited by hand leaves it as it is.
type mySQLRow struct {
	row
	Term string `json:"term"`
}

const mySQLColumns = "name, `schema`, holder, token, ttl, renew_every, attempt, value, ext, term"

func (r *mySQLRow) columns() []any {
	return []any{&r.Name, &r.Schema, &r.Holder, &r.Token, &r.TTL, &r.RenewEvery, &r.Attempt, &r.Value, &r.Ext, &r.Term}
}

func (r mySQLRecords) Get(ctx context.Context, election string) ([]byte, error) {
	return mySQLContent(r.db.QueryRowContext(ctx, "select "+mySQLColumns+" from elector where name = ?", election))
}

func mySQLContent(found *sql.Row) ([]byte, error) {
	var c mySQLRow
	err := found.Scan(c.columns()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// An execer is a database or a transaction in it.
type execer interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

func (r mySQLRecords) Put(ctx context.Context, _ string, content []byte) error {
	return putMySQL(ctx, r.db, content)
}

// putMySQL updates the row where there is one, and leaves its term if content has none.
func putMySQL(ctx context.Context, in execer, content []byte) error {
	var c mySQLRow
	if err := json.Unmarshal(content, &c); err != nil {
		return err
	}
	_, err := in.ExecContext(ctx, "insert into elector ("+mySQLColumns+") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"+
		" on duplicate key update `schema` = values(`schema`), holder = values(holder), token = values(token), ttl = values(ttl), renew_every = values(renew_every),"+
		" attempt = values(attempt), value = values(value), ext = values(ext), term = if(values(term) = '', term, values(term))",
		c.Name, c.Schema, c.Holder, c.Token, int64(c.TTL), int64(c.RenewEvery), c.Attempt, c.Value, string(c.Ext), c.Term)
	return err
}

func (r mySQLRecords) Replace(ctx context.Context, election string, old, new []byte) (done bool, err error) {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // does nothing after a commit
	now, err := mySQLContent(tx.QueryRowContext(ctx, "select "+mySQLColumns+" from elector where name = ? for update", election))
	if err != nil || !bytes.Equal(now, old) {
		return false, err
	}
	if err := putMySQL(ctx, tx, new); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

func (mySQLRecords) Decode(election string, content []byte) (backends.Record, error) {
	return postgresRecords{}.Decode(election, content)
}

// Encode leaves the term out.
func (mySQLRecords) Encode(election string, x backends.Record) []byte {
	return postgresRecords{}.Encode(election, x)
}

func (r mySQLRecords) Delete(ctx context.Context, election string) error {
	_, err := r.db.ExecContext(ctx, "delete from elector where name = ?", election)
	return err
}
