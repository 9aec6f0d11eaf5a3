// Package account keeps balances in a PostgreSQL table that refuses writers
// with stale fencing tokens. Each row remembers the highest token that it has
// seen, and each statement compares with it: the database itself refuses, so it
// does not matter how late a statement arrives or who sends it.
package account

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector"
)

// Create makes the table, and the named account with a balance of 0, unless
// they are there.
func Create(ctx context.Context, pool *pgxpool.Pool, name string) error {
	if _, err := pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS fencedwriter_account (
			name  TEXT PRIMARY KEY,
			cents BIGINT NOT NULL,
			token BIGINT NOT NULL)`); err != nil {
		return fmt.Errorf("creating the table fencedwriter_account: %w", err)
	}
	_, err := pool.Exec(ctx, `
		INSERT INTO fencedwriter_account (name, cents, token) VALUES ($1, 0, 0)
		ON CONFLICT (name) DO NOTHING`, name)
	return err
}

// Read returns the balance in cents under a token: from then on, lower tokens
// are refused. So it writes. A plain SELECT would not do: an old leader could
// still write between it and the new leader's first write, which would then
// overwrite what the old one wrote.
//
// It returns elector.ErrStale if a higher token has been seen.
func Read(ctx context.Context, pool *pgxpool.Pool, token elector.Token, name string) (cents int64, err error) {
	err = pool.QueryRow(ctx, `
		UPDATE fencedwriter_account SET token = $1
		WHERE name = $2 AND token <= $1
		RETURNING cents`, token, name).Scan(&cents)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, refusal(ctx, pool, token, name)
	}
	return cents, err
}

// Write sets the balance in cents. It returns elector.ErrStale if a higher
// token has been seen, and then has changed nothing.
func Write(ctx context.Context, pool *pgxpool.Pool, token elector.Token, name string, cents int64) error {
	tag, err := pool.Exec(ctx, `
		UPDATE fencedwriter_account SET cents = $3, token = $1
		WHERE name = $2 AND token <= $1`, token, name, cents)
	if err == nil && tag.RowsAffected() == 0 {
		return refusal(ctx, pool, token, name)
	}
	return err
}

// Transfer adds cents to the balance: read, modify, write. Nobody but the
// writer with the highest token can come in between, and a writer does one
// thing at a time. It returns elector.ErrStale like Read and Write.
func Transfer(ctx context.Context, pool *pgxpool.Pool, token elector.Token, name string, cents int64) error {
	balance, err := Read(ctx, pool, token, name)
	if err != nil {
		return err
	}
	return Write(ctx, pool, token, name, balance+cents)
}

// refusal finds out why a statement changed no row. It decides nothing.
func refusal(ctx context.Context, pool *pgxpool.Pool, token elector.Token, name string) error {
	var highest elector.Token
	err := pool.QueryRow(ctx, `SELECT token FROM fencedwriter_account WHERE name = $1`, name).Scan(&highest)
	if err != nil {
		return fmt.Errorf("account %q: why was it not changed? %w", name, err)
	}
	return fmt.Errorf("account %q: token %v: %w: token %v has been here since", name, token, elector.ErrStale, highest)
}
