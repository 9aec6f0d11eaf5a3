//go:build mysql

package stores

import (
	"errors"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/mysql"
)

// A guard on the caller's own connection fails where it keeps no successor out, whatever
// character set the connection has. MariaDB stands in: it is looked for as Vitess is, and
// executes the comment as TiDB does.
func TestMySQLGuardElsewhere(t *testing.T) {
	g := newMySQLGuarded(t)
	r, err := g.acquire("a", backends.Record{}, "first")
	must(t, err)
	lease := g.lease("a", r)
	statement, err := mysql.Guard(lease)
	must(t, err)
	query, ok := g.b.(backends.SQLGuarder).SQLGuard(backends.Acquisition(lease))
	if !ok {
		t.Fatal("no query")
	}
	vitess, tidb := strings.NewReplacer("%itess%", "%aria%"), strings.NewReplacer("/*T!", "/*!")
	for _, names := range []string{"utf8mb4", "latin1", "binary", "sjis"} {
		tx, err := g.db.Begin()
		must(t, err)
		_, err = tx.Exec("set names " + names)
		must(t, err)
		count := func(query string, args ...any) (n int, err error) {
			return n, tx.QueryRow(query, args...).Scan(&n)
		}
		if n, err := count(query.Query, query.Args...); n != 1 || err != nil {
			t.Errorf("%s: the query on MySQL: %d, %v", names, n, err)
		}
		if _, err := tx.Exec(statement); err != nil {
			t.Errorf("%s: the guard on MySQL: %v", names, err)
		}
		if n, err := count(vitess.Replace(query.Query), query.Args...); n != 2 || err != nil {
			t.Errorf("%s: the query on Vitess: %d, %v", names, n, err)
		}
		if _, err := tx.Exec(vitess.Replace(statement)); err == nil || !strings.Contains(err.Error(), "elector: no guard on this server") || mysql.Refused(err) {
			t.Errorf("%s: the guard on Vitess: %v", names, err)
		}
		var e *gomysql.MySQLError
		for _, s := range []string{statement, query.Query} {
			var err error
			if s == statement {
				_, err = tx.Exec(tidb.Replace(s))
			} else {
				_, err = count(tidb.Replace(s), query.Args...)
			}
			if !errors.As(err, &e) || e.Number != 1064 || !strings.Contains(e.Message, "no guard on TiDB") || query.Absent(err) {
				t.Errorf("%s: on TiDB: %v", names, err)
			}
		}
		must(t, tx.Rollback())
	}
}
