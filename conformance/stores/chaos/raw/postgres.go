package raw

import (
	"context"
	"errors"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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

func (r postgresRecords) Get(ctx context.Context, election string) (content []byte, err error) {
	err = r.pool.QueryRow(ctx, "select to_json(e)::text from elector e where name = $1", election).Scan(&content)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return content, err
}

// Put replaces the row in one transaction, so that nobody sees that it is gone.
func (r postgresRecords) Put(ctx context.Context, election string, content []byte) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "delete from elector where name = $1", election); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into elector select * from json_populate_record(null::elector, $1::json)", string(content))
		return err
	})
}

func (r postgresRecords) Delete(ctx context.Context, election string) error {
	_, err := r.pool.Exec(ctx, "delete from elector where name = $1", election)
	return err
}
