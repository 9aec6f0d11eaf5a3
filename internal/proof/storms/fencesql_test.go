package storms

import (
	"context"
	"database/sql"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/internal/proof/stores"
)

// fencesql.Transact refuses stale writes wherever the election is: in the database of
// the data, on another store, in another database, and in one of which the data's
// database has an old copy.
func TestFenceSQL(t *testing.T) {
	server := start(t, stores.Postgres)
	home, data := database(t, server.URL, ""), database(t, server.URL, "data")
	table, err := fencesql.New(fencesql.PostgreSQL, "fences")
	must(t, err)
	for _, db := range []*sql.DB{home, data} {
		exec(t, db, written)
		exec(t, db, table.CreateSQL())
	}
	elections, err := backends.Open(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, elections.Close()) })
	exec(t, home, noted)
	// copied has the table of another election store, and so has the data's database.
	copied, err := backends.Open(t.Context(), at(server.URL, "data")+"?create=true")
	must(t, err)
	must(t, copied.Close())

	storm := func(name string, b backends.Backend, db *sql.DB, admit bool) Storm {
		s := Storm{Handles: []backends.Backend{b, b, b}, Election: name, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1,
			Write: func(ctx context.Context, a *Attempt) error {
				a.Pause()
				return table.Transact(ctx, db, a, writes(ctx, a))
			},
			Order: func(ctx context.Context) (acquisitions, writes []Mark, err error) {
				if acquisitions, err = marks(ctx, db, "acquired", name); err == nil {
					writes, err = marks(ctx, db, "written", name)
				}
				return acquisitions, writes, err
			}}
		if admit { // a token refuses older ones from when it has entered
			s.Acquired = func(ctx context.Context, l backends.Lease) error {
				a, err := l.Acquisition()
				if err != nil {
					return err
				}
				return table.Transact(ctx, db, l, func(tx *sql.Tx) error {
					if db == home { // whose trigger has done it
						return nil
					}
					_, err := tx.ExecContext(ctx, "insert into acquired values ($1, $2)", a.Election, a.Record.Token)
					return err
				})
			}
		}
		return s
	}
	guarded := func(s Storm, db *sql.DB) Storm {
		s.Write = func(ctx context.Context, a *Attempt) error {
			a.Pause()
			return postgres.TransactDB(ctx, db, a, writes(ctx, a))
		}
		return s
	}
	// lagging makes the copy in the data's database that of the acquisition before.
	lagging := func(s Storm) Storm {
		var mutex sync.Mutex
		acquired, statement := s.Acquired, ""
		s.Acquired = func(ctx context.Context, l backends.Lease) error {
			mutex.Lock()
			defer mutex.Unlock()
			if statement != "" {
				if _, err := data.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
			if err := home.QueryRowContext(ctx, `select format('insert into elector values (%L, %L, %L, %L, %L, %L, %L, %L, %L) on conflict (name) do update
				set holder = excluded.holder, token = excluded.token, attempt = excluded.attempt', name, schema, holder, token, ttl, renew_every, attempt, value, ext)
				from elector where name = $1`, s.Election).Scan(&statement); err != nil {
				return err
			}
			return acquired(ctx, l)
		}
		return s
	}

	pass(t, storm("sql-at-home", elections, home, false))
	pass(t, storm("sql-at-home-admitted", elections, home, true))
	pass(t, storm("sql-another-store", memory.NewStore().Handle(), data, true))
	pass(t, storm("sql-another-database", elections, data, true))
	pass(t, lagging(storm("sql-copy", elections, data, true)))

	caught(t, lagging(guarded(storm("sql-copy-guard-alone", elections, data, true), data)), late)
	unfenced := storm("sql-no-fence-elsewhere", memory.NewStore().Handle(), data, true)
	unfenced.Write = func(ctx context.Context, a *Attempt) error { // what guards only where there is a guard
		a.Pause()
		tx, err := data.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := writes(ctx, a)(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	caught(t, unfenced, late)
	// Without the guard, an older leader writes until the newer one has entered.
	row := storm("sql-token-alone", elections, home, false)
	row.Write = func(ctx context.Context, a *Attempt) error {
		a.Pause()
		return table.Transact(ctx, home, unguarded{a}, writes(ctx, a))
	}
	caught(t, row, late)
}

// unguarded is a lease of a backend that offers no guard.
type unguarded struct{ backends.Lease }

func (u unguarded) Acquisition() (backends.Acquisition, error) {
	a, err := u.Lease.Acquisition()
	a.Backend = struct{ backends.Backend }{a.Backend}
	return a, err
}

// writes is the work of a transaction.
func writes(ctx context.Context, a *Attempt) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, write, a.Election, a.Token)
		a.Pause()
		a.Send()
		return err
	}
}

func marks(ctx context.Context, db *sql.DB, table, election string) (all []Mark, err error) {
	rows, err := db.QueryContext(ctx, "select token, (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1e6)::bigint from "+table+" where election = $1", election)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m Mark
		if err := rows.Scan(&m.Token, &m.Position); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, rows.Err()
}

// at is the address of another database of a server.
func at(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}

// database opens a database of a server, which it creates if it has a name.
func database(t *testing.T, address, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", address)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(20)
	if name == "" {
		return db
	}
	exec(t, db, "create database "+name)
	return database(t, at(address, name), "")
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	must(t, err)
}
