//go:build mysql

package stores

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/mysql"
	"github.com/elector-go/elector/conformance"
)

// Processes of a new store that start at once all get the table.
func TestMySQLCreatesAtOnce(t *testing.T) {
	createAtOnce(t, obtain(t, MySQL).URL+"&table=fresh")
}

func TestMySQL(t *testing.T) {
	s := obtain(t, MySQL)
	b := opener(s.URL)(t) // makes the table
	must(t, b.Close())
	db, err := sql.Open("mysql", s.MySQLName())
	must(t, err)
	t.Cleanup(func() { db.Close() })
	exec := func(t testing.TB, statement string, args ...any) {
		t.Helper()
		// Not of the test's context, which ends before clean-ups run.
		_, err := db.ExecContext(context.Background(), statement, args...)
		must(t, err)
	}
	update := func(set string) func(testing.TB, string) {
		return func(t testing.TB, name string) {
			exec(t, "insert ignore into elector values (?, 1, 'somebody', 1, 15000000000, 4500000000, 'nonce.1', '', '', 'x')", name)
			exec(t, "update elector set "+set+" where name = ?", name)
		}
	}
	conform(t, MySQL, s.How, conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		Raw: &conformance.Raw{
			Get: func(t testing.TB, name string) []byte {
				var row mySQLRow
				err := db.QueryRow("select * from elector where name = ?", name).Scan(row.columns()...)
				if errors.Is(err, sql.ErrNoRows) {
					return nil
				}
				must(t, err)
				content, err := json.Marshal(row)
				must(t, err)
				return content
			},
			Put: func(t testing.TB, name string, content []byte) {
				var row mySQLRow
				must(t, json.Unmarshal(content, &row))
				exec(t, "replace into elector values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.columns()...)
			},
			Delete:  func(t testing.TB, name string) { exec(t, "delete from elector where name = ?", name) },
			Spoiled: spoiledMySQL(update),
		},
		Setups: mySQLSetups(t, s, exec),
	})
}

// A mySQLRow has the columns of the table.
type mySQLRow struct {
	Name                    []byte
	Schema                  int
	Holder                  []byte
	Token, TTL, Renew       int64
	Attempt, Value, Ext, On []byte
}

func (r *mySQLRow) columns() []any {
	return []any{&r.Name, &r.Schema, &r.Holder, &r.Token, &r.TTL, &r.Renew, &r.Attempt, &r.Value, &r.Ext, &r.On}
}

// spoiledMySQL are rows that our table takes and that are no records.
func spoiledMySQL(update func(set string) func(testing.TB, string)) map[string]map[string]func(testing.TB, string) {
	spoiled := map[string]map[string]func(testing.TB, string){"bad/garbage": {}, "bad/ttl": {}, "bad/newer": {}, "rec/bounds": {}}
	for of, sets := range map[string][]string{
		"bad/garbage": {
			"token = 0", "token = -1", "token = 9007199254740992", "token = 9223372036854775807",
			"attempt = ''", "attempt = 'x'", "attempt = '.1'", "attempt = 'x.0'", "attempt = 'x.-1'", "attempt = concat(repeat('x', 65), '.1')",
			"holder = x'ff'", "value = x'00'",
		},
		"bad/ttl": {
			"ttl = 0", "ttl = -1", "ttl = 86400000000001", "ttl = 9223372036854775807", "ttl = -9223372036854775808",
			"renew_every = 0", "renew_every = -1", "renew_every = ttl", "renew_every = 9223372036854775807",
		},
		"bad/newer": {"`schema` = 2", "`schema` = 0", "`schema` = -1"},
		"rec/bounds": {
			`ext = '{}'`, `ext = 'null'`, `ext = '[]'`, `ext = 'x'`, `ext = '{"k_a":"1"}x'`, `ext = '"k_a"'`,
			`ext = '{"k_a":1}'`, `ext = '{"k_a":null}'`, `ext = '{"k_a":["x"]}'`, `ext = '{"k_a":{"b":"x"}}'`,
			`ext = '{"k_b":"1","k_a":"1"}'`, `ext = '{"k_a":"1","k_a":"1"}'`, `ext = '{"k_a": "1"}'`, `ext = '{"k_a":"<"}'`, `ext = '{"k_\\u0061":"1"}'`, `ext = '{"k_a":"\\u0000"}'`,
			`ext = '{"lock_delay":"5s"}'`, `ext = '{"x_a":"1"}'`, `ext = '{"K_a":"1"}'`, `ext = '{"k_":"1"}'`, `ext = '{"k_a1":"1"}'`, `ext = '{"holder":"1"}'`,
			`ext = concat('{"k_', repeat('a', 31), '":"1"}')`, `ext = concat('{"k_a":"', repeat('x', 2046), '"}')`,
			`ext = repeat('{"k_a":', 2000)`, `ext = repeat(' ', 16384)`,
		},
	} {
		for _, set := range sets {
			spoiled[of][set] = update(set)
		}
	}
	return spoiled
}

// mySQLSetups are servers, logins and tables that do not serve.
func mySQLSetups(t *testing.T, s *Store, exec func(testing.TB, string, ...any)) map[string]func(testing.TB) error {
	setups := map[string]func(testing.TB) error{
		"no server":   func(t testing.TB) error { return openError(t, "mysql://"+vacantAddress(t)+"/db") },
		"no database": func(t testing.TB) error { return openError(t, strings.Replace(s.URL, "/test", "/nowhere", 1)) },
		"no table": func(t testing.TB) error {
			return openError(t, strings.Replace(s.URL, "create=true", "table=nowhere", 1))
		},
		"an unknown parameter": func(t testing.TB) error { return openError(t, s.URL+"&autocommit=0") },
		"TLS":                  func(t testing.TB) error { return openError(t, strings.Replace(s.URL, "mysql:", "mysqls:", 1)) },
	}
	if s.PasswordURL != "" { // a server that the tests started
		setups["a wrong password"] = func(t testing.TB) error {
			return openError(t, Login{s.User.User, "not-the-password"}.In(s.PasswordURL))
		}
		setups["no rights"] = func(t testing.TB) error { return openError(t, s.User.In(s.PasswordURL)) }
		setups["no right to create the table"] = func(t testing.TB) error {
			exec(t, "create table "+mySQLSecured+".other (id int)")
			exec(t, "grant select on "+mySQLSecured+".other to "+s.User.User)
			return openError(t, s.User.In(s.PasswordURL)+"?create=true")
		}
		setups["no right to update"] = func(t testing.TB) error {
			exec(t, "grant select, insert on "+mariaDBDatabase+".elector to "+s.User.User)
			err := openError(t, s.User.In(s.PasswordURL)+"?table="+mariaDBDatabase+".elector")
			if !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "grant select, insert, update on `test`.`elector`") {
				t.Errorf("no right to update: %v", err)
			}
			return err
		}
		setups["a server that takes no writes"] = func(t testing.TB) error {
			replica := begin(t.(*testing.T), MySQL)
			must(t, replica.MySQLExec(context.Background(), "set global read_only = 1"))
			err := openError(t, replica.URL)
			if !errors.Is(err, backends.ErrReadOnly) {
				t.Errorf("a server that takes no writes: %v", err)
			}
			return err
		}
	}
	const columns = "`schema` int, holder varbinary(4096), token bigint, ttl bigint, renew_every bigint, attempt varbinary(128), value varbinary(4096), ext varbinary(16384), term varbinary(128)"
	for i, definition := range []string{
		"table %s (id int)",
		"table %s (name varchar(255) character set utf8mb4 primary key, " + columns + ", unique key term (name, term))",
		"table %s (name varbinary(255), " + columns + ", unique key term (name, term))",
		"table %s (name varbinary(255) primary key, " + columns + ")",
		"table %s (name varbinary(255) primary key, " + columns + ", key term (name, term))",
		"table %s (name varbinary(255) primary key, " + columns + ", unique key term (name, term(3)))",
		"table %s (name varbinary(255) primary key, " + strings.Replace(columns, "bigint", "varbinary(9)", 1) + ", unique key term (name, term))",
		"table %s (name varbinary(255) primary key, " + strings.Replace(columns, "(16384)", "(64)", 1) + ", unique key term (name, term))",
		"table %s (name varbinary(255) primary key, " + columns + ", unique key term (name, term)) engine = MyISAM",
		"table %s (name varbinary(255) primary key, " + columns + ", unique key term (name, term)) engine = Aria",
		"view %s as select 1 as name",
	} {
		setups[fmt.Sprintf(definition, "t")] = func(t testing.TB) error {
			table := fmt.Sprintf("unfit_%d", i)
			exec(t, fmt.Sprintf("create "+definition, table))
			return openError(t, s.URL+"&table="+table)
		}
	}
	return setups
}
