package stores

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/conformance"
)

func TestPostgres(t *testing.T) {
	s := obtain(t, Postgres)
	// Not of the test's context, which ends before clean-ups run.
	pool, err := pgxpool.New(context.Background(), s.URL)
	must(t, err)
	t.Cleanup(pool.Close)
	exec := func(t testing.TB, sql string, args ...any) {
		t.Helper()
		_, err := pool.Exec(t.Context(), sql, args...)
		must(t, err)
	}
	update := func(set string) func(testing.TB, string) {
		return func(t testing.TB, name string) {
			exec(t, `insert into elector values ($1, 1, 'somebody', 1, 15000000000, 4500000000, 'nonce.1', '') on conflict do nothing`, name)
			exec(t, "update elector set "+set+" where name = $1", name)
		}
	}
	conform(t, Postgres, s.How, conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		Raw: &conformance.Raw{
			// The row as JSON.
			Get: func(t testing.TB, name string) (content []byte) {
				err := pool.QueryRow(t.Context(), "select to_json(e)::text from elector e where name = $1", name).Scan(&content)
				if errors.Is(err, pgx.ErrNoRows) {
					return nil
				}
				must(t, err)
				return content
			},
			Put: func(t testing.TB, name string, content []byte) {
				exec(t, `with gone as (delete from elector where name = $1 returning 1) select count(*) from gone`, name)
				exec(t, `insert into elector select * from json_populate_record(null::elector, $1::json)`, string(content))
			},
			Delete:  func(t testing.TB, name string) { exec(t, "delete from elector where name = $1", name) },
			Spoiled: spoiledRows(update),
		},
		Setups: postgresSetups(s, exec),
	})
}

// spoiledRows are rows that our table takes and that are no records.
func spoiledRows(update func(set string) func(testing.TB, string)) map[string]map[string]func(testing.TB, string) {
	spoiled := map[string]map[string]func(testing.TB, string){"bad/garbage": {}, "bad/ttl": {}, "bad/newer": {}, "rec/bounds": {}}
	for of, sets := range map[string][]string{
		"bad/garbage": {
			"token = 0", "token = -1", "token = 9007199254740992", "token = 9223372036854775807",
			"attempt = ''", "attempt = 'x'", "attempt = '.1'", "attempt = 'x.0'", "attempt = 'x.-1'", "attempt = repeat('x', 65) || '.1'",
			"holder = repeat('h', 4097)", "value = repeat('v', 4097)", "value = repeat('v', 1048576)", "attempt = repeat('v', 1048576)",
		},
		"bad/ttl": {
			"ttl = 0", "ttl = -1", "ttl = 86400000000001", "ttl = 9223372036854775807", "ttl = -9223372036854775808",
			"renew_every = 0", "renew_every = -1", "renew_every = ttl", "renew_every = 9223372036854775807",
		},
		"bad/newer": {"schema = 2", "schema = 0", "schema = -1"},
		"rec/bounds": {
			`ext = '{}'`, `ext = 'null'`, `ext = '[]'`, `ext = 'x'`, `ext = '{"k_a":"1"}x'`, `ext = '"k_a"'`,
			`ext = '{"k_a":1}'`, `ext = '{"k_a":null}'`, `ext = '{"k_a":["x"]}'`, `ext = '{"k_a":{"b":"x"}}'`,
			`ext = '{"k_b":"1","k_a":"1"}'`, `ext = '{"k_a":"1","k_a":"1"}'`, `ext = '{"k_a": "1"}'`, `ext = '{"k_a":"<"}'`, `ext = '{"k_\u0061":"1"}'`, `ext = '{"k_a":"\u0000"}'`,
			`ext = '{"lock_delay":"5s"}'`, `ext = '{"x_a":"1"}'`, `ext = '{"K_a":"1"}'`, `ext = '{"k_":"1"}'`, `ext = '{"k_a1":"1"}'`, `ext = '{"holder":"1"}'`,
			`ext = '{"k_' || repeat('a', 31) || '":"1"}'`, `ext = '{"k_a":"' || repeat('x', 2046) || '"}'`,
			`ext = '{"k_a":"' || repeat('x', 1048576) || '"}'`, `ext = repeat('{"k_a":', 100000)`, `ext = repeat(' ', 1048576)`,
		},
	} {
		for _, set := range sets {
			spoiled[of][set] = update(set)
		}
	}
	return spoiled
}

// postgresSetups are servers, logins and tables that do not serve.
func postgresSetups(s *Store, exec func(testing.TB, string, ...any)) map[string]func(testing.TB) error {
	setups := map[string]func(testing.TB) error{
		"no server":   func(t testing.TB) error { return openError(t, "postgres://"+vacantAddress(t)+"/db") },
		"no database": func(t testing.TB) error { return openError(t, s.URL+"_that_is_not_there") },
		"no table": func(t testing.TB) error {
			err := openError(t, s.URL+"?table=nowhere")
			if !strings.Contains(err.Error(), "create=true") || !strings.Contains(err.Error(), `create table "public"."nowhere"`) {
				t.Errorf("it does not say how the table is created: %v", err)
			}
			return err
		},
		"an unknown parameter": func(t testing.TB) error { return openError(t, s.URL+"?tabel=elector") },
		"a server that takes no writes": func(t testing.TB) error {
			err := openError(t, s.URL+"?options="+strings.ReplaceAll("-c default_transaction_read_only=on", " ", "%20"))
			if !errors.Is(err, backends.ErrReadOnly) {
				t.Errorf("a server that takes no writes: %v", err)
			}
			return err
		},
	}
	if s.PasswordURL != "" { // a server that the tests started
		setups["a wrong password"] = func(t testing.TB) error {
			return openError(t, Login{s.User.User, "not-the-password"}.In(s.PasswordURL))
		}
		setups["no right to create the table"] = func(t testing.TB) error { return openError(t, s.User.In(s.PasswordURL)+"?create=true") }
	}
	for i, definition := range []string{
		"table %s (id int)",
		"table %s (name text primary key, schema int, holder text, token text, ttl bigint, renew_every bigint, attempt text, value text, ext text)",
		"table %s (name text, schema int, holder text, token bigint, ttl bigint, renew_every bigint, attempt text, value text, ext text)",
		"table %s (name text primary key, schema int, holder text, token bigint, ttl bigint, renew_every bigint, attempt text, value text)",
		"table %s (name text primary key, schema int, holder text, token bigint, ttl bigint, renew_every bigint, attempt text, value text, ext json)",
		"unlogged table %s (name text primary key, schema int, holder text, token bigint, ttl bigint, renew_every bigint, attempt text, value text, ext text)",
		"view %s as select 1 as name",
	} {
		setups[fmt.Sprintf(definition, "t")] = func(t testing.TB) error {
			table := fmt.Sprintf("unfit_%d", i)
			exec(t, fmt.Sprintf("create "+definition, table))
			return openError(t, s.URL+"?table="+table)
		}
	}
	return setups
}
