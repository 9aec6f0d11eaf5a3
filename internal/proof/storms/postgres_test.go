package storms

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/internal/proof/stores"
)

// written is the data: each row is a guarded write. The server's own order is that
// of its commits, and a trigger notes the acquisitions.
const written = `create table written (election text, token bigint);
	create table acquired (election text, token bigint);
	create function note() returns trigger language plpgsql as 'begin insert into acquired values (new.name, new.token); return null; end';`

const noted = `create trigger created after insert on elector for each row execute function note();
	create trigger acquired after update on elector for each row when (old.token <> new.token) execute function note()`

const write = `insert into written values ($1, $2)`

// writeHeld is the condition in a statement as the package documents it, and
// writeSeen leaves out the lock.
const (
	writeSeen = `insert into written select $1, $2 where exists (select from elector where name = $1 and token = $2 and holder <> '')`
	writeHeld = `insert into written select $1, $2 where exists (select from elector where name = $1 and token = $2 and holder <> '' for key share)`
)

func TestPostgres(t *testing.T) {
	server := start(t, stores.Postgres)
	config, err := pgxpool.ParseConfig(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20
	config.ConnConfig.OnNotice = postgres.OnNotice
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db, err := sql.Open("pgx", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec := func(statement string) {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	backend := func() backends.Backend {
		b, err := postgres.New(t.Context(), pool, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
	exec(written)
	handles := []backends.Backend{backend(), backend(), backend()}
	exec(noted)
	storm := func(name string, write func(context.Context, *Attempt) error) Storm {
		return Storm{Handles: handles, Election: name, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1, Write: write,
			Order: func(ctx context.Context) (acquisitions, writes []Mark, err error) {
				marks := func(table string) (marks []Mark) {
					rows, _ := pool.Query(ctx, "select token, (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1e6)::bigint from "+table+" where election = $1", name)
					found, failed := pgx.CollectRows(rows, pgx.RowToStructByPos[Mark])
					if failed != nil {
						err = failed
					}
					return found
				}
				return marks("acquired"), marks("written"), err
			}}
	}
	// transaction runs a guard, the write and the commit. Its pauses are before it
	// too: writers that always hold a lock between them let no acquisition through.
	transaction := func(level pgx.TxIsoLevel, guard func(context.Context, pgx.Tx, *Attempt) error) func(context.Context, *Attempt) error {
		return func(ctx context.Context, a *Attempt) error {
			a.Pause()
			return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
				if err := guard(ctx, tx, a); err != nil {
					return err
				}
				a.Pause()
				_, err := tx.Exec(ctx, write, a.election(), a.Token)
				a.Send()
				return err
			})
		}
	}
	looks := func(statement string) func(context.Context, pgx.Tx, *Attempt) error {
		return func(ctx context.Context, tx pgx.Tx, a *Attempt) error {
			found, err := tx.Exec(ctx, statement, a.election(), a.Token)
			if err == nil && found.RowsAffected() == 0 {
				return backends.ErrStale
			}
			return err
		}
	}
	// conditional has the guard in the write.
	conditional := func(write string) func(context.Context, *Attempt) error {
		return func(ctx context.Context, a *Attempt) error {
			a.Pause()
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				err := looks(write)(ctx, tx, a)
				a.Pause()
				a.Send()
				return err
			})
		}
	}

	pass(t, storm("transact", func(ctx context.Context, a *Attempt) error {
		return postgres.Transact(ctx, pool, a, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, write, a.election(), a.Token)
			a.Pause()
			a.Send()
			return err
		})
	}))
	pass(t, storm("transact-db", func(ctx context.Context, a *Attempt) error {
		return postgres.TransactDB(ctx, db, a, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, write, a.election(), a.Token)
			a.Pause()
			a.Send()
			return err
		})
	}))
	pass(t, storm("guard-first", transaction(pgx.ReadCommitted, func(ctx context.Context, tx pgx.Tx, a *Attempt) error {
		guard, err := postgres.Guard(a)
		if err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, guard); postgres.Refused(err) {
			return backends.ErrStale
		}
		return err
	})))
	pass(t, storm("condition", conditional(writeHeld)))

	caught(t, storm("condition-without-lock", conditional(writeSeen)), late)
	plain := looks(`select from elector where name = $1 and token = $2 and holder <> ''`)
	caught(t, storm("plain-select", transaction(pgx.ReadCommitted, plain)), late)
	caught(t, storm("plain-select-serializable", transaction(pgx.Serializable, plain)), late)
	exec("alter table elector drop constraint elector_name_token_key")
	caught(t, storm("without-index", transaction(pgx.ReadCommitted, looks(`select from elector where name = $1 and token = $2 and holder <> '' for key share`))), late)
}

func (a *Attempt) election() string {
	of, _ := a.Acquisition()
	return of.Election
}
