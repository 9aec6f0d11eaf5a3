//go:build mysql

package stores

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A server whose defaults are wrong does not change what statements do.
func TestMySQLDefaults(t *testing.T) {
	s := begin(t, MySQL)
	must(t, opener(s.URL)(t).Close()) // makes the table
	must(t, s.MySQLExec(t.Context(),
		"set global autocommit = 0", "set global tx_isolation = 'READ-UNCOMMITTED'", "set global sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'",
		"set global character_set_server = 'sjis'", "set global innodb_lock_wait_timeout = 100",
		"create user app@'%'", "grant select, insert, update on elector to app",
		"set global init_connect = 'set autocommit = 0, sql_mode = \"\"'")) // for all but administrators
	b := opener(strings.Replace(s.URL, "root@", "app@", 1))(t)
	defer func() { must(t, b.Close()) }()
	db, err := sql.Open("mysql", s.MySQLName()+"?autocommit=1")
	must(t, err)
	defer db.Close()
	r := backends.Record{Holder: `'"\` + "\n%_é\xe2\x82\xac ", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}, Extensions: `{"k_a":"\\ '"}`}
	made, err := b.Swap(t.Context(), "Job", backends.Record{}, r)
	must(t, err)
	found, err := b.Load(t.Context(), "Job")
	if must(t, err); found != made {
		t.Errorf("read %+v, want %+v", found, made)
	}
	for _, other := range []string{"job", "JOB"} {
		if found, err := b.Load(t.Context(), other); err != nil || found.Exists() {
			t.Errorf("%s reads as %+v, %v", other, found, err)
		}
	}
	var n int
	if err := db.QueryRow("select count(*) from elector where holder = ?", []byte(r.Holder)).Scan(&n); err != nil || n != 1 {
		t.Errorf("others see %d rows, %v: the write was not committed", n, err)
	}

	// Nothing is read that is not committed.
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	_, err = tx.Exec("update elector set holder = 'other' where name = 'Job'")
	must(t, err)
	if found, err := b.Load(t.Context(), "Job"); err != nil || found != made {
		t.Errorf("beside an open transaction: %+v, %v", found, err)
	}
	// A write that would wait for longer than a second is refused.
	next := made
	next.Attempt.Sequence++
	if _, err := b.Swap(t.Context(), "Job", made, next); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("a write of a locked row: %v", err)
	}
	must(t, tx.Rollback())
	_, err = b.Swap(t.Context(), "Job", made, next)
	must(t, err)
}

// The whole row is compared: each edit by hand makes a conflict.
func TestMySQLEdited(t *testing.T) {
	s := begin(t, MySQL)
	b := opener(s.URL)(t)
	defer func() { must(t, b.Close()) }()
	r := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}, Value: "v"}
	for _, set := range []string{"holder = 'H'", "holder = 'h '", "token = 2", "ttl = ttl + 1", "renew_every = renew_every + 1", "attempt = 'N.2'", "value = 'V'", `ext = '{"t_a":"1"}'`} {
		now, err := b.Load(t.Context(), "a")
		must(t, err)
		made, err := b.Swap(t.Context(), "a", now, r)
		must(t, err)
		must(t, s.MySQLExec(t.Context(), "update elector set "+set))
		next := made
		next.Attempt.Sequence = 9
		if _, err := b.Swap(t.Context(), "a", made, next); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("after %s: %v", set, err)
		}
	}
}

// elector doctor finds nothing on a server that syncs, and each of these set-ups.
func TestMySQLDoctor(t *testing.T) {
	program := buildTool(t)
	s, err := start(t.Context(), MySQL, durable)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	must(t, opener(s.URL)(t).Close()) // makes the table
	must(t, s.MySQLExec(t.Context(), "create user app@'%'", "grant select, insert, update on elector to app", "create user reader@'%'", "grant select on elector to reader"))
	app := strings.Replace(s.URL, "root@", "app@", 1)
	for _, args := range [][]string{nil, {"--read-only"}} {
		d := diagnose(t, program, app, append(args, "--ttl=10m")...)
		if d.code != 0 || len(d.lines) < 6 || slices.ContainsFunc(d.lines, func(l diagnosisLine) bool { return l.Level != "ok" || l.Seen == "" || l.Fix != "" }) {
			t.Errorf("%v: exit code %d: %s", args, d.code, d.output)
		}
		t.Log(d.output)
	}
	unsynced, err := startMySQLWith(t.Context(), quick, "--innodb-flush-log-at-trx-commit=0")
	must(t, err)
	t.Cleanup(func() { must(t, unsynced.Stop()) })
	replica := begin(t, MySQL)
	must(t, replica.MySQLExec(context.Background(), "set global read_only = 1"))
	// These have defects of their own, and a record each.
	idle, swallowing := begin(t, MySQL), begin(t, MySQL)
	must(t, idle.MySQLExec(t.Context(), "set global wait_timeout = 60"))
	must(t, opener(swallowing.URL)(t).Close())
	diagnose(t, program, swallowing.URL, "--ttl=10m")
	diagnose(t, program, app, "--ttl=10m")
	two := strings.Replace(s.URL, s.Address, s.Address+","+swallowing.Address, 1)
	must(t, swallowing.MySQLExec(t.Context(), "create trigger keeps before update on elector for each row set new.attempt = old.attempt"))
	for name, test := range map[string]struct {
		url         string
		code        int
		level       string
		check, cure string
	}{
		"idle connections end":     {idle.URL, 0, "warn", "wait_timeout", "above the TTL"},
		"a trigger":                {swallowing.URL, 78, "fail", "triggers", "keeps"},
		"a trigger, by its effect": {swallowing.URL, 78, "fail", "write", "earlier state"},
		"two primaries":            {two, 78, "fail", "one store", "are two stores"},
		"unsynced":                 {unsynced.URL, 78, "fail", "commits", "innodb_flush_log_at_trx_commit = 1"},
		"administrator":            {s.URL, 0, "warn", "privileges", "read-only"},
		"replica":                  {replica.URL, 78, "fail", "connection", "primary's host"},
		"no right":                 {strings.Replace(s.URL, "root@", "reader@", 1), 77, "fail", "connection", "grant select, insert, update on"},
		"no table":                 {strings.Replace(app, "create=true", "table=nowhere", 1), 78, "fail", "connection", "create=true"},
		"wrong password":           {Login{s.User.User, "not-the-password"}.In(s.PasswordURL), 77, "fail", "connection", "check user and password"},
		"server down":              {"mysql://" + vacantAddress(t) + "/db", 69, "fail", "connection", "see whether the server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnose(t, program, test.url, "--ttl=10m")
			found := slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
				return l.Level == test.level && l.Check == test.check && strings.Contains(l.Seen+" "+l.Fix, test.cure)
			})
			if d.code != test.code || !found || strings.Contains(d.output, "not-the-password") {
				t.Errorf("exit code %d, want %d and a line %q of %q with %q: %s", d.code, test.code, test.level, test.check, test.cure, d.output)
			}
		})
	}
}

// The right to select is enough on MySQL, and a server that takes no writes will do.
func TestMySQLReader(t *testing.T) {
	s := begin(t, MySQL)
	must(t, opener(s.URL)(t).Close()) // makes the table
	must(t, s.MySQLExec(t.Context(), "create user looks@'%'", "grant select on elector to looks", "create user app@'%'", "grant select, insert, update on elector to app", "create user none@'%'"))
	reader := strings.Replace(s.URL, "root@", "looks@", 1)
	readsOnly(t, strings.Replace(s.URL, "root@", "app@", 1), reader, reader+"&table=typo")
	if _, err := backends.OpenReadOnly(t.Context(), strings.Replace(reader, "looks@", "none@", 1)); err == nil || !strings.Contains(err.Error(), "grant select on `test`.`elector` to 'none'") {
		t.Errorf("a user without a right: %v", err)
	}
	must(t, s.MySQLExec(t.Context(), "set global read_only = 1"))
	defer func() { must(t, s.MySQLExec(context.Background(), "set global read_only = 0")) }()
	must(t, s.MySQLExec(t.Context(), "set global innodb_flush_log_at_trx_commit = 2", "create user watches@'%'", "grant select on elector to watches"))
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	watches, err := backends.OpenReadOnly(t.Context(), strings.Replace(reader, "looks@", "watches@", 1))
	slog.SetDefault(before)
	must(t, err)
	must(t, watches.Close())
	if logged.Len() > 0 {
		t.Errorf("a reader of a replica that syncs less warns: %s", &logged)
	}
	for call, err := range readerCalls(t, reader) {
		if err != nil {
			t.Errorf("on a replica, %s: %v", call, err)
		}
	}
	if err := refusedBy(t, reader); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("a candidate on a replica: %v", err)
	}
}

func TestMySQLRotates(t *testing.T) {
	ctx := t.Context()
	s := begin(t, MySQL)
	must(t, opener(s.URL)(t).Close()) // makes the table
	login := Login{"rotated", rand.Text()}
	must(t, s.MySQLExec(ctx, "create user rotated@'%' identified by '"+login.Password+"'", "grant select, insert, update on elector to rotated@'%'"))
	rotates(t, s.URL, login, func(l Login) {
		must(t, s.MySQLExec(ctx, "alter user rotated@'%' identified by '"+l.Password+"'", "kill connection user rotated"))
	})
}
