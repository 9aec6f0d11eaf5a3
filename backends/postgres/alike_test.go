package postgres

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// server is what a server of a version answers while the table exists. It has pg_notify
// if notifies is t. state is what a read finds out about the server.
func server(version, notifies, state string) []answer {
	r := check.Good()
	texts := texts(r)
	row := [][]byte{[]byte(state), {}, {}, []byte(check.Election), []byte("1")}
	for _, text := range texts {
		row = append(row, []byte(text))
	}
	some := func(types []uint32, values ...string) (a answer) {
		a.types = types
		for _, v := range values {
			a.row = append(a.row, []byte(v))
		}
		return a
	}
	as := func(a answer, contains string) answer { a.contains = contains; return a }
	columns := make([]string, len(columns))
	for i, definition := range plainColumns() {
		columns[i] = `"` + definition + `"`
	}
	many := append([][]byte{[]byte(state)}, row[3:]...)
	return []answer{
		as(some([]uint32{25, 16}, version, notifies), "pg_catalog.pg_proc"),
		as(some([]uint32{25, 25, 25}, state, "u", "public"), "current_schema()"),
		as(some([]uint32{1009, 1009}, "{"+strings.Join(columns, ",")+"}", "{name}"), "information_schema"),
		{contains: "where false", types: []uint32{25}},
		as(some([]uint32{25, 1009}, state, "{"+check.Election+"}"), "array(select name"),
		{contains: "any($1::text[])", types: slices.Concat(loadTypes[:1], loadTypes[3:]), row: many},
		as(some([]uint32{25, 701}, version, "1"), "clock_timestamp"),
		as(some([]uint32{25}, check.Election), "returning name"),
		{contains: "e.* from (select 1) as one", types: loadTypes, row: row},
		as(some([]uint32{25, 25, 25}, "", "", ""), "returning set_config"),
	}
}

func plainColumns() (all []string) {
	for _, definition := range columns {
		all = append(all, strings.Join(strings.Fields(definition)[:2], " "))
	}
	return all
}

const (
	cockroach = "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2)"
	yugabyte  = "PostgreSQL 11.2-YB-2.21.1.0-b271 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit"
	genuine   = "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit"
)

// The server is recognized when the handle opens.
func TestRecognize(t *testing.T) {
	for name, c := range map[string]struct {
		version, notifies, like string
		refused                 bool
	}{
		"PostgreSQL":                     {version: genuine, notifies: "t"},
		"EnterpriseDB":                   {version: "EnterpriseDB 9.5.0.5 on x86_64-pc-linux-gnu", notifies: "t"},
		"CockroachDB":                    {version: cockroach, notifies: "f", like: "CockroachDB"},
		"CockroachDB with notifications": {version: cockroach, notifies: "t", like: "CockroachDB"},
		"YugabyteDB":                     {version: yugabyte, notifies: "t", like: "YugabyteDB"}, // which has the function, but it fails
		"Redshift":                       {version: "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.77467", notifies: "f", refused: true},
		"CrateDB":                        {version: "CrateDB 5.7.0 (built 8d5d2f9/2024-04-18T11:14:00Z)", notifies: "f", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := cannedBackend(t)
			s.by = server(c.version, c.notifies, "off")
			err := b.recognize(t.Context())
			if c.refused && (!errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), c.version)) || !c.refused && err != nil {
				t.Fatalf("got %v", err)
			}
			if b.like != c.like || b.noListen != (c.like != "") {
				t.Errorf("it is like %q, without LISTEN: %v; want %q", b.like, b.noListen, c.like)
			}
		})
	}
}

// No statement to a server that only looks like PostgreSQL needs more than it has: no
// notification, setting, row lock, or catalog of PostgreSQL's own.
func TestPlain(t *testing.T) {
	for _, version := range []string{cockroach, yugabyte} {
		s, b := cannedBackend(t)
		s.by = server(version, "t", "off")
		if err := b.recognize(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.answers(nil, nil)
		ctx := t.Context()
		if err := b.prepare(ctx, true); err != nil {
			t.Fatal(err)
		}
		next := check.Good()
		next.Attempt.Sequence++
		_, err := b.Swap(ctx, check.Election, backends.Record{}, next)
		r, load := b.Load(ctx, check.Election)
		_, update := b.Swap(ctx, check.Election, r, next)
		names, list := b.List(ctx)
		_, inspect := b.Inspect(ctx, check.Good().TTL)
		many := b.LoadMany(ctx, []string{check.Election, "other"})
		if err := errors.Join(err, load, update, list, inspect, many[0].Err, many[1].Err); err != nil {
			t.Fatal(err)
		}
		if r.Holder != check.Good().Holder || many[0].Record != r || many[1].Record.Exists() || !slices.Equal(names, []string{check.Election}) {
			t.Errorf("read %+v and %+v, and the names %q", r, many, names)
		}
		asked, _ := s.questions()
		for _, field := range strings.Split(fields, ", ") {
			if !slices.ContainsFunc(asked, func(sql string) bool {
				return strings.HasPrefix(sql, "update") && strings.Contains(sql, "and "+field+" = $")
			}) {
				t.Errorf("no update compares %s", field)
			}
		}
		if len(asked) != 11 {
			t.Errorf("%d statements, want 11: %q", len(asked), asked)
		}
		asked = append(asked, b.table.plainCreateSQL())
		for _, sql := range asked {
			for _, lacks := range []string{"pg_notify", "set_config", " for ", "lateral", "unnest", "regclass", "pg_", "with ", "collate", "integer", "lock_timeout"} {
				if strings.Contains(strings.ToLower(sql), lacks) {
					t.Errorf("%.20s: a statement has %q: %s", version, lacks, sql)
				}
			}
		}
		s.answers(nil, nil)
		if d := b.Describe(); d.MaxSwaps != 0 || !d.NoWatch {
			t.Errorf("it is described as %+v", d)
		}
		for _, o := range b.SwapMany(ctx, []backends.Change{{Name: "a", Next: next}, {Name: "b", Next: next}}) {
			if !errors.Is(o.Err, backends.ErrNotTried) {
				t.Errorf("shared renewals: %v", o.Err)
			}
		}
		if asked, _ := s.questions(); len(asked) != 0 {
			t.Errorf("shared renewals sent %q", asked)
		}
	}
}

// A write without an answer is not read under a lock there, and a conflict is one.
func TestPlainConflict(t *testing.T) {
	s, b := cannedBackend(t)
	b.like = "CockroachDB"
	s.by = []answer{{contains: "returning name", types: []uint32{25}}}
	if _, err := b.Swap(t.Context(), check.Election, backends.Record{}, check.Good()); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("no row was written: %v", err)
	}
}

// An error of the commit comes after the row. It is a conflict only
// if its code allows the statement to be repeated; otherwise the outcome is unknown.
func TestPlainCommit(t *testing.T) {
	for state, conflict := range map[string]bool{"40001": true, "40003": false, "XXA00": false, "XX000": false, "57014": false} {
		s, b := cannedBackend(t)
		b.like = "CockroachDB"
		s.by = []answer{{contains: "returning name", types: []uint32{25}, row: [][]byte{[]byte(check.Election)}, fails: state}}
		for _, prev := range []backends.Record{{}, versioned(check.Election, check.Good())} {
			next := check.Good()
			next.Token++
			_, err := b.Swap(t.Context(), check.Election, prev, next)
			if errors.Is(err, backends.ErrConflict) != conflict || errors.Is(err, backends.ErrUnavailable) == conflict {
				t.Errorf("%s: got %v", state, err)
			}
		}
	}
}

// Without a schema there is no table to name in a statement.
func TestPlainSchema(t *testing.T) {
	s, b := cannedBackend(t)
	b.like, b.table = "CockroachDB", table{"elector"}
	s.by = []answer{{contains: "current_schema()", types: []uint32{25, 25, 25}, row: [][]byte{[]byte("off"), []byte("u"), {}}}}
	if err := b.prepare(t.Context(), true); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "table=public.elector") {
		t.Errorf("got %v", err)
	}
	if asked, _ := s.questions(); len(asked) != 1 {
		t.Errorf("it asked %q", asked)
	}
}

// What followers of the store answer may be old.
func TestFollowers(t *testing.T) {
	s, b := cannedBackend(t)
	s.by = server(cockroach, "f", "followers")
	if err := b.recognize(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, load := b.Load(t.Context(), check.Election)
	_, list := b.List(t.Context())
	for _, err := range []error{load, list, b.LoadMany(t.Context(), []string{check.Election})[0].Err, b.prepare(t.Context(), false)} {
		if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "default_transaction_use_follower_reads") {
			t.Errorf("got %v", err)
		}
	}
	asked, _ := s.questions()
	for _, sql := range asked[1:] {
		if !strings.Contains(sql, "default_transaction_use_follower_reads") || !strings.Contains(sql, "yb_read_from_followers") {
			t.Errorf("a read that followers may answer: %s", sql)
		}
	}
	b.base.SetReadOnly(true)
	if _, err := b.Load(t.Context(), check.Election); err != nil {
		t.Errorf("to read alone: %v", err)
	}
}

// Without a listening connection no statement notifies, and with one news do.
func TestListenNotify(t *testing.T) {
	for _, listen := range []bool{true, false} {
		s, b := cannedBackend(t)
		s.by = server(genuine, "t", "off")
		b.noListen = !listen
		r := versioned(check.Election, check.Good())
		next := check.Good()
		next.Token++
		for what, send := range map[string]func(){
			"creation": func() { b.Swap(t.Context(), check.Election, backends.Record{}, next) },
			"change":   func() { b.Swap(t.Context(), check.Election, r, next) },
			"a batch":  func() { b.SwapMany(t.Context(), []backends.Change{{Name: "a", Next: next}, {Name: "b", Next: next}}) },
		} {
			s.answers(nil, nil)
			send()
			asked, _ := s.questions()
			if len(asked) != 1 || strings.Contains(asked[0], "pg_notify") != listen {
				t.Errorf("%s, listening: %v: %q", what, listen, asked)
			}
		}
	}
}

// There is no guard where a row lock may keep no successor out.
func TestGuardAlike(t *testing.T) {
	for _, like := range []string{"CockroachDB", "YugabyteDB"} {
		b := &Backend{table: table{"public", "elector"}, guarded: true, like: like}
		b.base = backends.NewBase("postgres://h/db", b.classify)
		h := fakeLease{Backend: b, Election: "reports", Record: check.Good()}
		_, guard := Guard(h)
		transact := Transact(t.Context(), nil, h, func(pgx.Tx) error { t.Error("work ran"); return nil })
		transactDB := TransactDB(t.Context(), nil, h, func(*sql.Tx) error { t.Error("work ran"); return nil })
		for _, err := range []error{guard, transact, transactDB} {
			if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), like) {
				t.Errorf("%s: got %v", like, err)
			}
		}
		if _, ok := b.SQLGuard(backends.Acquisition(h)); ok {
			t.Errorf("%s: there is a query for fencesql", like)
		}
	}
}
