package raw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
)

// A postgresRecords has a row of the table elector for each record. It shows
// them as JSON.
type postgresRecords struct{ pool *pgxpool.Pool }

func openPostgres(_ context.Context, u *url.URL) (Records, func() error, error) {
	// The pool is not ended by this context.
	pool, err := pgxpool.New(context.Background(), u.String())
	if err != nil {
		return nil, nil, errors.New("the URL is not one of PostgreSQL") // its error may hold a password
	}
	return postgresRecords{pool}, func() error { pool.Close(); return nil }, nil
}

const get = "select to_json(e)::text from elector e where name = $1"

func (r postgresRecords) Get(ctx context.Context, election string) ([]byte, error) {
	return content(r.pool.QueryRow(ctx, get, election))
}

func content(row pgx.Row) (content []byte, err error) {
	if err = row.Scan(&content); errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return content, err
}

// Put updates the row where there is one: a guard that meets the deletion of a row
// refuses, although the transaction inserts it again.
func (r postgresRecords) Put(ctx context.Context, _ string, content []byte) error {
	_, err := r.pool.Exec(ctx, put, string(content))
	return err
}

const (
	fields = "schema, holder, token, ttl, renew_every, attempt, value, ext"
	put    = "insert into elector (name, " + fields + ") select name, " + fields + " from json_populate_record(null::elector, $1::json)" +
		" on conflict (name) do update set (" + fields + ") = row(excluded.schema, excluded.holder, excluded.token, excluded.ttl, excluded.renew_every, excluded.attempt, excluded.value, excluded.ext)"
)

func (r postgresRecords) Replace(ctx context.Context, election string, old, new []byte) (done bool, err error) {
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		now, err := content(tx.QueryRow(ctx, get+" for update", election))
		if done = err == nil && bytes.Equal(now, old); !done {
			return err
		}
		_, err = tx.Exec(ctx, put, string(new))
		return err
	})
	return done && err == nil, err
}

// A row is what the columns hold, by their names.
type row struct {
	Name       string              `json:"name"`
	Schema     int                 `json:"schema"`
	Holder     string              `json:"holder"`
	Token      uint64              `json:"token"`
	TTL        time.Duration       `json:"ttl"`
	RenewEvery time.Duration       `json:"renew_every"`
	Attempt    string              `json:"attempt"`
	Value      string              `json:"value"`
	Ext        backends.Extensions `json:"ext"`
}

func (r postgresRecords) Decode(election string, content []byte) (backends.Record, error) {
	var c row
	if err := json.Unmarshal(content, &c); err != nil {
		return backends.Record{}, backends.Foreign("%v", err)
	}
	attempt, err := backends.ParseAttempt(c.Attempt)
	if err != nil {
		return backends.Record{}, backends.Foreign("%v", err)
	}
	return backends.Record{Holder: c.Holder, Token: c.Token, TTL: c.TTL, RenewEvery: c.RenewEvery, Attempt: attempt, Value: c.Value, Extensions: c.Ext}, nil
}

func (r postgresRecords) Encode(election string, x backends.Record) []byte {
	content, err := json.Marshal(row{election, backends.Schema, x.Holder, x.Token, x.TTL, x.RenewEvery, x.Attempt.String(), x.Value, x.Extensions})
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return content
}

func (r postgresRecords) Delete(ctx context.Context, election string) error {
	_, err := r.pool.Exec(ctx, "delete from elector where name = $1", election)
	return err
}
