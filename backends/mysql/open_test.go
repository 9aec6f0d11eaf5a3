package mysql

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

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
	configs, options, err := parse(t.Context(), parseURL(t, "mysql://me:p%40s%2Fs%3A%25@h1,h2:3307/base?table=ops.elections&create=true&one_node=true&allow_async=true"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Options{Table: "ops.elections", Create: true, OneNode: true, AllowAsync: true}); options != want {
		t.Errorf("options %+v, want %+v", options, want)
	}
	if len(configs) != 2 || configs[0].Addr != "h1:3306" || configs[1].Addr != "h2:3307" {
		t.Fatalf("%d servers", len(configs))
	}
	for _, c := range configs {
		if c.User != "me" || c.Passwd != "p@s/s:%" || c.DBName != "base" || c.TLSConfig != "preferred" || c.Timeout == 0 {
			t.Errorf("configuration %+v", c)
		}
	}
	configs, options, err = parse(t.Context(), parseURL(t, "mysqls://[::1]/db?server_name=other"))
	if err != nil || options != (Options{Table: "elector"}) || configs[0].Addr != "[::1]:3306" {
		t.Fatalf("defaults: %+v, %v", options, err)
	}
	if c := configs[0]; c.TLS == nil || c.TLS.ServerName != "other" || c.TLSConfig != "" {
		t.Errorf("TLS: %+v", c.TLS)
	}
	if _, options, err = parse(t.Context(), parseURL(t, "mysql://h/db?readonly=true")); err != nil || options != (Options{Table: "elector", ReadOnly: true}) {
		t.Errorf("to read alone: %+v, %v", options, err)
	}
	configs, _, err = parse(t.Context(), parseURL(t, "mysqls://h1,h2/db"))
	if err != nil || configs[1].TLS.ServerName != "h2" || exposed(configs[0]) {
		t.Errorf("the certificate of the second host is not checked: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	check.Refuses(t,
		"mysql:opaque",
		"mysql://h/db?tabel=x",
		"mysql://h/db?table=a&table=b",
		"mysql://h/db?create=perhaps",
		"mysql://h/db?autocommit=0",
		"mysql://h/db?multiStatements=true",
		"mysql://h/db?table=",
		"mysql://h/db?table=a.b.c",
		"mysql://h/db?table=a%3Bb",
		"mysql://h/db?table=a%60b",
		"mysql://h/db?ca=/x",
		"mysqls://h/db?ca=/no/such/file",
		"mysql:///db",
		"mysql://h,/db",
		"mysql://h",
		"mysql://h/a/b",
		"mysql://h/db?table="+strings.Repeat("a", 65),
		// Passwords that are not encoded: 12/secret, 12#secret and so on.
		"mysql://u:12/secret@h/db",
		"mysql://u:12#secret@h/db",
		"mysql://u:12?secret@h/db",
		"mysql://u:12?secret=a@h/db",
	)
}

// A configuration that switches autocommit off is refused, and what it says of other
// things does not matter.
func TestNewRefuses(t *testing.T) {
	check.NotMade[*Backend](t, "configuration")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Table")(New(t.Context(), &gomysql.Config{}, &Options{Table: "a.b.c"}))
	check.NotMade[*Backend](t, "DBName")(New(t.Context(), &gomysql.Config{}, nil))
	for _, name := range []string{"autocommit=0", "autocommit=off", "AutoCommit=OFF", "autocommit=%270%27"} {
		config, err := gomysql.ParseDSN("u:secret@tcp(127.0.0.1:1)/db?" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(t.Context(), config, nil); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "autocommit") {
			t.Errorf("%s: %v", name, err)
		}
	}
	config, err := gomysql.ParseDSN("u@tcp(h)/db?multiStatements=true&rejectReadOnly=true&charset=gbk&collation=gbk_chinese_ci&checkConnLiveness=false")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serverOf(config); err != nil {
		t.Fatal(err)
	}
	if config.MultiStatements || config.RejectReadOnly || !config.InterpolateParams || !config.ClientFoundRows || !config.CheckConnLiveness || config.Collation != "utf8mb4_general_ci" {
		t.Errorf("%+v", config)
	}
}

func TestCreateSQL(t *testing.T) {
	const want = "create table `ops`.`Elections` (name varbinary(255) not null, `schema` int not null, holder varbinary(4096) not null, token bigint not null, ttl bigint not null, renew_every bigint not null, attempt varbinary(128) not null, value varbinary(4096) not null, ext varbinary(16384) not null, term varbinary(128) not null, primary key (name), unique key term (name, term)) engine = InnoDB"
	if got := (table{"ops", "Elections"}).createSQL(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
