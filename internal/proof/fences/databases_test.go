// Package fences runs fencesql on real databases.
package fences

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}

// A database is one to test on.
type database struct {
	*sql.DB
	driver, name string // of the DB
	election     string // the URL of elections in the same database, if there are such
	dialect      fencesql.Dialect
	isolations   []sql.IsolationLevel // that transactions may have
	serial       string               // a type that counts up by itself
	// again reports whether the database asks to begin a transaction again.
	again func(error) bool
}

// onEach runs a test on each database.
func onEach(t *testing.T, test func(*testing.T, database)) {
	for name, open := range map[string]func(*testing.T) database{
		"PostgreSQL": postgres,
		"MariaDB":    func(t *testing.T) database { return mariaDB(t, "") },
		"SQLite":     sqlite,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func openSQL(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func postgres(t *testing.T) database {
	s, err := stores.Start(t.Context(), stores.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Log(s)
	return database{
		DB: openSQL(t, "pgx", s.URL), driver: "pgx", name: s.URL, election: s.URL + "?create=true", dialect: fencesql.PostgreSQL, serial: "bigserial",
		isolations: []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead, sql.LevelSerializable},
		again: func(err error) bool {
			var answer *pgconn.PgError
			return errors.As(err, &answer) && (answer.Code == "40001" || answer.Code == "40P01")
		},
	}
}

func mariaDB(t *testing.T, query string) database {
	s, err := stores.StartMariaDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Log(s)
	return database{
		DB: openSQL(t, "mysql", s.URL+query), driver: "mysql", name: s.URL + query, election: mySQLURL(t, s.URL), dialect: fencesql.MySQL, serial: "bigint auto_increment",
		isolations: []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelSerializable},
		again: func(err error) bool {
			var answer *mysql.MySQLError
			return errors.As(err, &answer) && answer.Number == 1213
		},
	}
}

// mySQLURL is the URL of elections in the database of a name for the driver.
func mySQLURL(t *testing.T, name string) string {
	config, err := mysql.ParseDSN(name)
	if err != nil {
		t.Fatal(err)
	}
	return "mysql://" + config.User + "@" + config.Addr + "/" + config.DBName + "?create=true"
}

func sqlite(t *testing.T) database {
	name := "file:" + filepath.Join(t.TempDir(), "data") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)"
	return database{
		DB: openSQL(t, "sqlite", name), driver: "sqlite", name: name, dialect: fencesql.SQLite,
		serial: "integer", isolations: []sql.IsolationLevel{sql.LevelDefault},
		again: func(error) bool { return false },
	}
}

// table creates a table of tokens.
func (d database) table(t *testing.T, name string) *fencesql.Table {
	t.Helper()
	table, err := fencesql.New(d.dialect, name)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second does nothing
		d.exec(t, table.CreateSQL())
	}
	return table
}

func (d database) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
