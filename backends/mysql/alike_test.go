package mysql

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
)

// Servers that only look like MySQL, by what they answer: by default, and where their
// version is set to that of MySQL.
var alikes = map[string]map[string]string{
	"TiDB": serving("version", "8.0.11-TiDB-v7.5.1", "version_comment", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
		"tidb_txn_mode", "pessimistic", "tidb_current_ts", "0"),
	"TiDB that reports a version of MySQL":   serving("version", "8.0.35", "version_comment", "MySQL Community Server - GPL", "tidb_txn_mode", ""),
	"Vitess":                                 serving("version", "8.0.31-vitess-16.0.0", "version_comment", "Version: 16.0.0 (Git revision d54b87c83 branch 'main') built on Wed Jan 20 20:42:46 CET 2021 by a@b using go1.20 linux/amd64"),
	"Vitess that reports a version of MySQL": serving("version", "8.0.35", "version_comment", "Version: 21.0.0 (Git revision d54b87c83 branch 'main') built on Wed Jan 20 20:42:46 CET 2021 by a@b using go1.23 linux/amd64"),
	"Vitess without variables":               {"version": "5.7.9-Vitess"},
	"OceanBase":                              serving("version", "5.7.25-OceanBase_CE-v4.2.1.2", "version_comment", "OceanBase_CE 4.2.1.2"),
	"SingleStore":                            serving("version", "5.7.32", "version_comment", "SingleStoreDB source distribution (compatible; MySQL Enterprise & MySQL Commercial)"),
	"Dolt":                                   serving("version", "8.0.33", "version_comment", "Dolt"),
}

// No statement reaches a server that only looks like MySQL, and no option allows it.
func TestAlike(t *testing.T) {
	for name, is := range alikes {
		brand, _, _ := strings.Cut(name, " ")
		for _, o := range []Options{{}, {OneNode: true}, {ReadOnly: true}} {
			for what, unset := range map[string]error{"settled": nil, "refuses the session's settings": &gomysql.MySQLError{Number: 1105, Message: "unsupported"}} {
				t.Run(fmt.Sprintf("%s/%s/%+v", name, what, o), func(t *testing.T) {
					f := &fake{variables: maps.Clone(is), row: absent(), unset: unset}
					b := f.backend(t, o)
					_, load := b.Load(t.Context(), "a")
					_, swap := b.Swap(t.Context(), "a", backends.Record{}, record(1))
					opening := b.prepare(t.Context())
					for _, err := range []error{load, opening} {
						if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "the server is "+brand) {
							t.Errorf("got %v, want ErrMisconfigured with its name", err)
						}
					}
					if want := backends.ErrMisconfigured; !o.ReadOnly && !errors.Is(swap, want) {
						t.Errorf("a write: %v", swap)
					}
					if len(f.asked) > 0 {
						t.Errorf("it was asked %q", f.asked)
					}
				})
			}
		}
	}
	for _, is := range []map[string]string{
		serving(),
		serving("version", "8.4.3", "version_comment", "MySQL Community Server - GPL"),
		serving("version", "8.0.36-28", "version_comment", "Percona Server (GPL), Release 28, Revision 47601f19"),
		serving("version", "8.0.mysql_aurora.3.05.2", "version_comment", "Source distribution"),
	} {
		f := &fake{variables: is, row: absent()}
		if _, err := f.backend(t, Options{}).Load(t.Context(), "a"); err != nil {
			t.Errorf("%s %s: %v", is["version"], is["version_comment"], err)
		}
	}
	f := &fake{variables: serving(), row: absent(), unset: &gomysql.MySQLError{Number: 1227, Message: "Access denied"}}
	if _, err := f.backend(t, Options{}).Load(t.Context(), "a"); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("settings that MySQL refuses: %v", err)
	}
}

// A guard looks at the server of the caller's own connection, in the statement itself.
func TestGuardAlike(t *testing.T) {
	has := func(t *testing.T, variables map[string]string, o Options, text string, want bool) {
		t.Helper()
		b := (&fake{variables: variables, row: absent()}).backend(t, o)
		if _, err := b.Load(t.Context(), "reports"); err != nil {
			t.Fatal(err)
		}
		h := fakeLease{Backend: b, Election: "reports", Record: backends.Record{Holder: "h", Token: 7, Attempt: backends.Attempt{Nonce: "a", Sequence: 1}}}
		statement, err := Guard(h)
		if err != nil {
			t.Fatal(err)
		}
		query, ok := b.SQLGuard(backends.Acquisition(h))
		if !ok {
			t.Fatal("no query")
		}
		for _, s := range []string{statement, query.Query} {
			if strings.Contains(s, text) != want {
				t.Errorf("%q is in it: %v, want %v: %s", text, !want, want, s)
			}
		}
	}
	t.Run("TiDB", func(t *testing.T) { // which executes such comments, and it alone
		has(t, serving(), Options{}, "select /*T! elector has no guard on TiDB */ case when ", true)
	})
	t.Run("Vitess", func(t *testing.T) {
		has(t, serving(), Options{}, " case when @@version like '%itess%' or @@version_comment like '%itess%' or @@version_comment like 'Version: %(Git %'", true)
	})
	t.Run("Galera", func(t *testing.T) {
		has(t, serving(), Options{}, " or @@global.wsrep_on then ", true)
		has(t, serving("wsrep_on", "ON"), Options{OneNode: true}, "wsrep_on", false)
		mysql := serving()
		delete(mysql, "wsrep_on") // asking for it would be an error
		has(t, mysql, Options{}, "wsrep_on", false)
	})
	t.Run("refusals", func(t *testing.T) {
		for _, err := range []*gomysql.MySQLError{
			{Number: 1064, Message: `You have an error in your SQL syntax; line 1 column 66 near "no guard on TiDB */ case when"`},
			{Number: 1649, Message: "Unknown locale: 'elector: no guard on this server'"},
		} {
			b := (&fake{variables: serving()}).backend(t, Options{})
			got := explain(fakeLease{Backend: b, Election: "reports"}, fmt.Errorf("wrapped: %w", err))
			if !errors.Is(got, backends.ErrMisconfigured) || !strings.Contains(got.Error(), "nothing was committed") || Refused(got) {
				t.Errorf("%v: got %v", err, got)
			}
		}
	})
}
