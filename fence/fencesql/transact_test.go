package fencesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencesql"
)

// A server is a database that notes what it is sent. It reports one changed row for each
// statement, and answers each query with a number.
type server struct {
	sent   []string
	args   []driver.NamedValue // of the last update
	number int64
	fails  map[string]error // by the beginning of a statement; each once
}

func (s *server) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *server) Driver() driver.Driver                        { return nil }
func (s *server) Close() error                                 { return nil }
func (s *server) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }

func (s *server) Begin() (driver.Tx, error) { return s, s.note("begin") }
func (s *server) Commit() error             { return s.note("commit") }
func (s *server) Rollback() error           { return s.note("rollback") }

func (s *server) note(statement string) error {
	s.sent = append(s.sent, statement)
	for start, err := range s.fails {
		if strings.HasPrefix(statement, start) {
			delete(s.fails, start)
			return err
		}
	}
	return nil
}

func (s *server) ExecContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(statement, "update") {
		s.args = args
	}
	return driver.RowsAffected(1), s.note(statement)
}

func (s *server) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	return &rows{s.number, false}, s.note(query)
}

// rows is one number.
type rows struct {
	number int64
	read   bool
}

func (*rows) Columns() []string { return []string{"n"} }
func (*rows) Close() error      { return nil }
func (r *rows) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	to[0], r.read = r.number, true
	return nil
}

var (
	errAbsent   = errors.New("no such table")
	errDeadlock = errors.New("deadlock")
)

// guarded is a backend with a guard of a dialect.
type guarded struct {
	backends.Backend
	dialect string
}

func (g guarded) SQLGuard(backends.Acquisition) (backends.SQLGuard, bool) {
	return backends.SQLGuard{Dialect: g.dialect, Query: "guard", Absent: func(err error) bool { return errors.Is(err, errAbsent) }}, true
}

// A lease is one that its leader takes for valid, for a number of looks.
type lease struct {
	of    backends.Acquisition
	looks int
}

func (l *lease) Acquisition() (backends.Acquisition, error) {
	if l.looks--; l.looks < 0 {
		return backends.Acquisition{}, elector.ErrLost
	}
	return l.of, nil
}

// What Transact sends, in which order, and what it makes of the answers.
func TestTransact(t *testing.T) {
	const (
		enter = "update fences"
		work  = "work"
		save  = "savepoint elector"
		back  = "rollback to savepoint elector"
	)
	plain := []string{"begin", enter, work, "commit"}
	refused := []string{"begin", enter, work, save, "guard", "rollback"}
	record := func(holder string, token uint64, attempt string, sequence uint64) backends.Record {
		return backends.Record{Holder: holder, Token: token, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: attempt, Sequence: sequence}}
	}
	following, sameToken, vacant := record("b", 8, "b", 1), record("b", 7, "b", 1), record("", 7, "a", 2)
	for _, c := range []struct {
		name    string
		dialect string           // of the backend's guard, if it has one
		number  int64            // that the guard finds
		latest  *backends.Record // in the election's store; the lease's own by default
		closed  bool             // the store does not answer
		fails   map[string]error
		looks   int // at the lease while it is valid, 2 by default
		sent    []string
		want    error
		then    []string // what a second call sends, if that has another order
	}{
		{name: "the election on another store", sent: plain},
		{name: "the election in the same database", dialect: "PostgreSQL", number: 1, sent: []string{"begin", enter, work, save, "guard", "commit"}},
		{name: "the election in a database of another make", dialect: "MySQL", sent: plain},
		{name: "a server where the guard keeps no successor out", dialect: "PostgreSQL", number: 2, sent: refused, want: elector.ErrMisconfigured},
		{name: "another acquisition", dialect: "PostgreSQL", latest: &following, sent: refused, want: elector.ErrStale},
		{name: "another acquisition with the same token", dialect: "PostgreSQL", latest: &sameToken, sent: refused, want: elector.ErrStale},
		{name: "a release", dialect: "PostgreSQL", latest: &vacant, sent: refused, want: elector.ErrStale},
		{name: "another database with such a table", dialect: "PostgreSQL", sent: []string{"begin", enter, work, save, "guard", "commit"}, then: plain},
		{name: "another record, and no answer of the store", dialect: "PostgreSQL", closed: true, sent: refused, want: elector.ErrUnavailable},
		{name: "another database without such a table", dialect: "PostgreSQL", fails: map[string]error{"guard": errAbsent}, sent: []string{"begin", enter, work, save, "guard", back, "commit"}, then: plain},
		{name: "a guard in a deadlock", dialect: "PostgreSQL", fails: map[string]error{"guard": errDeadlock}, sent: refused, want: errDeadlock},
		{name: "an entry in a deadlock", fails: map[string]error{enter: errDeadlock}, sent: []string{"begin", enter, "rollback"}, want: errDeadlock},
		{name: "a lease that is over", looks: -1, want: elector.ErrLost},
		{name: "a lease that ends in between", looks: 1, sent: []string{"begin", enter, work, "rollback"}, want: elector.ErrLost},
		{name: "work that fails", fails: map[string]error{work: errDeadlock}, sent: []string{"begin", enter, work, "rollback"}, want: errDeadlock},
		{name: "a commit that fails", fails: map[string]error{"commit": errDeadlock}, sent: plain, want: errDeadlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &server{number: c.number, fails: c.fails}
			db := sql.OpenDB(s)
			defer db.Close()
			table, err := fencesql.New(fencesql.PostgreSQL, "fences")
			if err != nil {
				t.Fatal(err)
			}
			b := memory.New()
			l := &lease{of: backends.Acquisition{Backend: b, Election: "ledger", Remaining: 10 * time.Second, Record: record("a", 7, "a", 1)}}
			latest := l.of.Record
			latest.Attempt.Sequence = 2 // it was renewed
			if c.latest != nil {
				latest = *c.latest
			}
			if _, err := b.Swap(t.Context(), "ledger", backends.Record{}, latest); err != nil {
				t.Fatal(err)
			}
			if c.closed {
				b.Close()
			}
			if c.dialect != "" {
				l.of.Backend = guarded{b, c.dialect}
			}
			transact := func(want []string, wantErr error, looks int) {
				t.Helper()
				s.sent, l.looks = nil, looks
				err := table.Transact(t.Context(), db, l, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(t.Context(), work)
					return err
				})
				if !errors.Is(err, wantErr) {
					t.Errorf("the error is %v, want %v", err, wantErr)
				}
				if !slices.EqualFunc(s.sent, want, strings.HasPrefix) {
					t.Errorf("it sends %q, want %q", s.sent, want)
				}
			}
			looks := 2
			if c.looks != 0 {
				looks = max(c.looks, 0)
			}
			transact(c.sent, c.want, looks)
			if c.then != nil {
				transact(c.then, nil, 2)
			}
		})
	}

	t.Run("the bound of PostgreSQL", func(t *testing.T) {
		s := &server{}
		db := sql.OpenDB(s)
		defer db.Close()
		table, _ := fencesql.New(fencesql.PostgreSQL, "fences")
		for remaining, want := range map[time.Duration]string{10 * time.Second: "10000", time.Microsecond: "1"} { // 0 would be for ever
			s.sent = nil
			l := &lease{backends.Acquisition{Backend: memory.New(), Election: "ledger", Remaining: remaining, Record: backends.Record{Token: 7}}, 2}
			err := table.Transact(t.Context(), db, l, func(*sql.Tx) error { return nil })
			if err != nil || len(s.args) != 4 || s.args[3].Value != want || !strings.Contains(s.sent[1], "set_config('idle_in_transaction_session_timeout', $4, true)") {
				t.Errorf("%v, %q with %v, want the bound %s", err, s.sent[1], s.args, want)
			}
		}
	})
	t.Run("the bound of MySQL", func(t *testing.T) {
		const bound, unbound = "set @elector_wait_timeout = @@session.wait_timeout, session wait_timeout = ", "set session wait_timeout = @elector_wait_timeout"
		for name, c := range map[string]struct {
			fails map[string]error
			sent  []string
			want  error
		}{
			"restored":               {nil, []string{bound + "10", "begin", enter, "commit", unbound}, nil},
			"restored after failure": {map[string]error{enter: errDeadlock}, []string{bound + "10", "begin", enter, "rollback", unbound}, errDeadlock},
			"not begun":              {map[string]error{"begin": errDeadlock}, []string{bound + "10", "begin", unbound}, errDeadlock},
			"not restored":           {map[string]error{unbound: errDeadlock}, []string{bound + "10", "begin", enter, "commit", unbound}, nil},
			"not bounded":            {map[string]error{bound: errDeadlock}, []string{bound + "10"}, errDeadlock},
			"guarded":                {nil, []string{bound + "10", "begin", enter, "guard", "commit", unbound}, nil},
			"guarded elsewhere":      {map[string]error{"guard": errAbsent}, []string{bound + "10", "begin", enter, "guard", "commit", unbound}, nil},
		} {
			s := &server{fails: c.fails, number: 1}
			db := sql.OpenDB(s)
			table, _ := fencesql.New(fencesql.MySQL, "fences")
			l := &lease{backends.Acquisition{Backend: memory.New(), Election: "ledger", Remaining: 10 * time.Second, Record: backends.Record{Token: 7}}, 2}
			if strings.HasPrefix(name, "guarded") {
				l.of.Backend = guarded{l.of.Backend, "MySQL"}
			}
			err := table.Transact(t.Context(), db, l, func(*sql.Tx) error { return nil })
			if !errors.Is(err, c.want) || !slices.EqualFunc(s.sent, c.sent, strings.HasPrefix) {
				t.Errorf("%s: %v; it sends %q, want %q", name, err, s.sent, c.sent)
			}
			if open := db.Stats().OpenConnections; (open == 0) != (name == "not restored") {
				t.Errorf("%s: %d connections are open", name, open)
			}
			db.Close()
		}
	})
}
