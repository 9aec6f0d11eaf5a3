package stores

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/conformance"
)

// What the adapter sends to a server that only looks like PostgreSQL keeps every promise
// on PostgreSQL too. A function of that name stands in for the version of CockroachDB;
// those that it lacks, or whose effect is another one there, fail.
func TestPostgresAlike(t *testing.T) {
	s := begin(t, Postgres)
	pool, err := pgxpool.New(context.Background(), s.URL)
	must(t, err)
	t.Cleanup(pool.Close)
	for _, sql := range []string{
		"create schema alike",
		"create function alike.version() returns text language sql as $$ select 'CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)'::text $$",
		"create function alike.pg_notify(text, text) returns void language plpgsql as $$ begin raise 'pg_notify' using errcode = '42883'; end $$",
		"create function alike.set_config(text, text, boolean) returns text language plpgsql as $$ begin raise 'set_config' using errcode = '42883'; end $$",
	} {
		_, err := pool.Exec(t.Context(), sql)
		must(t, err)
	}
	url := s.URL + "?search_path=alike,pg_catalog,public&table=public.elector"
	alone := func(open func(testing.TB) backends.Backend) func(testing.TB) backends.Backend {
		return func(t testing.TB) backends.Backend {
			b := open(t)
			if b.Describe().MaxSwaps != 0 {
				t.Fatal("the backend shares renewals, which such a server cannot")
			}
			return hasten(t, unwatched{b.(listsAndLoads)})
		}
	}
	conformance.Run(t, conformance.Harness{Open: alone(opener(url)), OpenReadOnly: alone(readOnlyOpener(url))})
}

// listsAndLoads is what a handle can do that neither shares renewals nor has a Watch.
type listsAndLoads interface {
	backends.Lister
	backends.BatchLoader
}

// unwatched shows no more than that.
type unwatched struct{ listsAndLoads }
