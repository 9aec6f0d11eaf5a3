package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

func parseURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParse(t *testing.T) {
	for _, key := range []string{"PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGSERVICE", "PGSSLMODE", "PGAPPNAME"} {
		t.Setenv(key, "")
	}
	config, options, err := parse(parseURL(t, "postgres://me:p%40s%2Fs%3A%25@h1:5433,h2:5434/base?table=ops.elections&create=true&listen=false&sslmode=disable&search_path=ops&application_name=a%20b&pool_max_conns=2"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Options{Table: "ops.elections", Create: true, NoListen: true}); options != want {
		t.Errorf("options %+v, want %+v", options, want)
	}
	c := config.ConnConfig
	if c.User != "me" || c.Password != "p@s/s:%" || c.Database != "base" || c.Host != "h1" || c.Port != 5433 || len(c.Fallbacks) != 1 || c.Fallbacks[0].Host != "h2" || c.Fallbacks[0].Port != 5434 || config.MaxConns != 2 {
		t.Errorf("configuration: user %q database %q host %q:%d, %d fallbacks, %d connections", c.User, c.Database, c.Host, c.Port, len(c.Fallbacks), config.MaxConns)
	}
	if c.ValidateConnect == nil || c.OnNotice == nil || c.ConnectTimeout != 5*time.Second {
		t.Error("a server that takes writes, notices and a connect timeout must be asked for")
	}
	own := []string{"table", "create", "listen", "target_session_attrs"}
	for key, value := range c.RuntimeParams {
		if slices.Contains(own, key) {
			t.Errorf("parameter %s reaches the server", key)
		}
		if key == "search_path" && value != "ops" || key == "application_name" && value != "a b" {
			t.Errorf("%s is %q", key, value)
		}
	}

	config, options, err = parse(parseURL(t, "postgresql://?host=db"))
	if err != nil {
		t.Fatal(err)
	}
	if options != (Options{Table: "elector"}) || config.MaxConns != 4 || config.ConnConfig.Host != "db" {
		t.Errorf("defaults: %+v, %d connections, host %q", options, config.MaxConns, config.ConnConfig.Host)
	}
	if config.MaxConnLifetime < 100*365*24*time.Hour {
		t.Errorf("a connection that works is given up after %v: a full server may grant no other", config.MaxConnLifetime)
	}

	// To read alone, any server will do, unless the URL says otherwise.
	for attrs, any := range map[string]bool{"": true, "&target_session_attrs=any": true, "&target_session_attrs=standby": false, "&target_session_attrs=primary": false} {
		config, options, err = parse(parseURL(t, "postgres://h/db?readonly=true"+attrs))
		if err != nil {
			t.Fatal(err)
		}
		if options != (Options{Table: "elector", ReadOnly: true}) || (config.ConnConfig.ValidateConnect == nil) != any {
			t.Errorf("to read alone, with %q: %+v, any server will do: %v", attrs, options, config.ConnConfig.ValidateConnect == nil)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	check.Refuses(t,
		"postgres:opaque",
		"postgres://h/db?tabel=x",
		"postgres://h/db?table=a&table=b",
		"postgres://h/db?create=perhaps",
		"postgres://h/db?target_session_attrs=any",
		"postgres://h/db?target_session_attrs=standby",
		"postgres://h/db?readonly=true&target_session_attrs=secondary",
		"postgres://h/db?readonly=perhaps",
		"postgres://h/db?default_query_exec_mode=simple_protocol",
		"postgres://h/db?synchronous_commit=off",
		"postgres://h/db?table=",
		"postgres://h/db?table=a.b.c",
		"postgres://h/db?table=a%3Bb",
		"postgres://h/db?table=a%22b",
		"postgres://h/db?table=1a",
		"postgres://h/db?table="+strings.Repeat("a", 64),
		"postgres://u:secret@h/db?connect_timeout=never",
		"postgres://u:secret@h/db?pool_max_conns=0",
		"postgres://u:secret@h/db?sslmode=maybe",
		"postgres://u:secret@h/db?sslrootcert=%2Fno%2Fsuch%2Ffile&password=secret",
		// Passwords that are not encoded: 12/secret, 12#secret and so on.
		"postgres://u:12/secret@h/db",
		"postgres://u:12#secret@h/db",
		"postgres://u:12?secret@h/db",
		"postgres://u:12?secret=a@h/db",
	)
}

// Processes that start at once on an empty database create the table at the same time: what
// one of them meets depends on how far another one is.
func TestCreatedMeanwhile(t *testing.T) {
	for _, state := range []string{"23505", "42P07", "42710"} {
		s, b := cannedBackend(t)
		s.by = []answer{
			{contains: "create table", fails: state},
			{contains: "to_regclass", types: []uint32{25, 25, 25, 25, 25, 16, 16, 16, 1009, 16, 16},
				row: [][]byte{[]byte("off"), []byte("app"), []byte("public"), {}, {}, []byte("f"), []byte("f"), []byte("f"), []byte("{}"), []byte("f"), []byte("f")}},
		}
		err := b.create(t.Context(), true)
		if asked, _ := s.questions(); len(asked) != 2 || !strings.Contains(asked[1], "to_regclass") {
			t.Errorf("%s: asked %q, %v; want a look at the table", state, asked, err)
		}
	}
}

// Without create=true a missing table is not made: the URL may name the wrong database.
func TestNotCreated(t *testing.T) {
	s, b := cannedBackend(t)
	s.by = []answer{{contains: "to_regclass", types: []uint32{25, 25, 25, 25, 25, 16, 16, 16, 1009, 16, 16},
		row: [][]byte{[]byte("off"), []byte("app"), []byte("public"), {}, {}, []byte("f"), []byte("f"), []byte("f"), []byte("{}"), []byte("f"), []byte("f")}}}
	err := b.prepare(t.Context(), false)
	for _, says := range []string{`"public"."elector"`, fmt.Sprintf("database %q", b.database), "create=true", "create table"} {
		if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want ErrMisconfigured with %s", err, says)
		}
	}
	if asked, _ := s.questions(); slices.ContainsFunc(asked, func(sql string) bool { return strings.HasPrefix(sql, "create") }) {
		t.Errorf("it was asked %q", asked)
	}
}

func TestCreateSQL(t *testing.T) {
	const want = `create table "ops"."Elections" (name text collate "C" primary key, schema integer not null, holder text not null, token bigint not null, ttl bigint not null, renew_every bigint not null, attempt text not null, value text not null, ext text not null default '', unique (name, token)) with (fillfactor = 50)`
	if got := (table{"ops", "Elections"}).createSQL(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What a service file names may be rotated, but not the database: one process would use two.
func TestServiceFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "services")
	write := func(host, database, password string) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, "[app]\nhost=%s\ndbname=%s\nuser=me\npassword=%s\n", host, database, password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("db-1,db-2", "one", "a")
	config, _, err := parse(parseURL(t, "postgres://?service=app&servicefile="+url.QueryEscape(file)))
	if err != nil {
		t.Fatal(err)
	}
	connect := func() (*pgx.ConnConfig, error) {
		c := config.ConnConfig.Copy()
		return c, config.BeforeConnect(t.Context(), c)
	}
	write("db-1,db-2", "one", "b")
	if c, err := connect(); err != nil || c.Password != "b" {
		t.Errorf("a new password: %q, %v", c.Password, err)
	}
	for _, to := range [][2]string{{"db-3,db-2", "one"}, {"db-1,db-3", "one"}, {"db-1,db-2", "two"}} {
		write(to[0], to[1], "b")
		if c, err := connect(); !errors.Is(err, backends.ErrMisconfigured) || c.Password != "a" {
			t.Errorf("%v: %v", to, err)
		}
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(); err == nil {
		t.Error("an empty file is used")
	}
	write("db-1,db-2", "one", "c")
	if c, err := connect(); err != nil || c.Password != "c" {
		t.Errorf("it is as it was: %q, %v", c.Password, err)
	}
}

func TestNewRefuses(t *testing.T) {
	check.NotMade[*Backend](t, "pool")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Table")(New(t.Context(), new(pgxpool.Pool), &Options{Table: "a b"}))
}
