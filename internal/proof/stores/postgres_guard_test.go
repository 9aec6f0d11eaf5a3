package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/backends/postgres"
)

// A fakeLease is the lease of a leader that takes it for valid for a number of looks,
// whatever the store has.
type fakeLease struct {
	of    backends.Acquisition
	looks int
}

func (h *fakeLease) Acquisition() (backends.Acquisition, error) {
	if h.looks == 0 {
		return backends.Acquisition{}, elector.ErrLost
	}
	h.looks--
	return h.of, nil
}

func believes(b backends.Backend, election string, r backends.Record) *fakeLease {
	return &fakeLease{backends.Acquisition{Backend: b, Election: election, Record: r, Remaining: time.Minute}, 1 << 30}
}

// acquires replaces a record by that of another acquisition.
func (l lockedRows) acquires(election string, prev backends.Record) backends.Record {
	l.Helper()
	r, err := l.b.Swap(l.Context(), election, prev, following(prev))
	must(l, err)
	return r
}

func following(prev backends.Record) backends.Record {
	return backends.Record{Holder: fmt.Sprint("holder-", prev.Token+1), Token: prev.Token + 1, TTL: 15 * time.Second, RenewEvery: time.Second,
		Attempt: backends.Attempt{Nonce: fmt.Sprint("nonce-", prev.Token+1), Sequence: 1}}
}

// renews replaces a record by the next one of its acquisition.
func (l lockedRows) renews(election string, prev backends.Record) backends.Record {
	l.Helper()
	next := prev
	next.Attempt.Sequence++
	r, err := l.b.Swap(l.Context(), election, prev, next)
	must(l, err)
	return r
}

// An opened transaction runs statements, or ends itself.
type opened struct {
	exec func(sql string) error
	end  func() error
}

// A transactor is Transact or TransactDB.
type transactor func(context.Context, backends.Lease, func(opened) error) error

// transactors returns Transact with each way in which pgx sends statements, and
// TransactDB with two drivers. Each has one connection: a second transaction cannot
// begin before the first has ended.
func transactors(t *testing.T, url string) map[string]transactor {
	all := map[string]transactor{}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config, err := pgxpool.ParseConfig(url)
		must(t, err)
		config.MaxConns = 1
		config.ConnConfig.DefaultQueryExecMode = mode
		pool, err := pgxpool.NewWithConfig(context.Background(), config)
		must(t, err)
		t.Cleanup(pool.Close)
		all[strings.ReplaceAll(mode.String(), " ", "-")] = func(ctx context.Context, h backends.Lease, work func(opened) error) error {
			return postgres.Transact(ctx, pool, h, func(tx pgx.Tx) error {
				return work(opened{
					exec: func(sql string) error { _, err := tx.Exec(ctx, sql); return err },
					end:  func() error { return tx.Commit(ctx) },
				})
			})
		}
	}
	for _, driver := range []string{"pgx", "postgres"} {
		db, err := sql.Open(driver, url+"?sslmode=disable")
		must(t, err)
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1)
		all["sql-"+driver] = func(ctx context.Context, h backends.Lease, work func(opened) error) error {
			return postgres.TransactDB(ctx, db, h, func(tx *sql.Tx) error {
				return work(opened{
					exec: func(sql string) error { _, err := tx.ExecContext(ctx, sql); return err },
					end:  tx.Commit,
				})
			})
		}
	}
	return all
}

// A guarded transaction is committed while its acquisition is the latest, and
// leaves nothing behind otherwise, a transaction least of all.
func TestPostgresTransact(t *testing.T) {
	l := beside(t)
	l.exec("create table notes (election text, note text)")
	for name, transact := range transactors(t, l.url) {
		t.Run(name, func(t *testing.T) {
			l := lockedRows{t, l.url, l.pool, l.b}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			first := l.acquires(name, backends.Record{})
			h := believes(l.b, name, first)
			attempt := func(ctx context.Context, h backends.Lease, note string, then func(opened) error) (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("panic: %v", p)
					}
				}()
				return transact(ctx, h, func(o opened) error {
					if err := o.exec(fmt.Sprintf("insert into notes values ('%s', '%s')", name, note)); err != nil {
						return err
					}
					return then(o)
				})
			}
			nothing := func(opened) error { return nil }
			must(t, attempt(ctx, h, "written", nothing))
			renewed := l.renews(name, first)
			must(t, attempt(ctx, h, "renewed", func(opened) error {
				renewed = l.renews(name, renewed)
				return nil
			}))
			failed := errors.New("failed")
			inTheMiddle, end := context.WithCancel(ctx)
			for what, c := range map[string]struct {
				ctx  context.Context
				h    backends.Lease
				then func(opened) error
				want func(error) bool
			}{
				"an error":             {ctx, h, func(opened) error { return failed }, func(err error) bool { return err == failed }},
				"a panic":              {ctx, h, func(opened) error { panic("work") }, func(err error) bool { return err.Error() == "panic: work" }},
				"a lease that ends":    {ctx, &fakeLease{h.of, 1}, nothing, func(err error) bool { return errors.Is(err, elector.ErrLost) }},
				"a lease that is over": {ctx, &fakeLease{h.of, 0}, func(o opened) error { panic("work") }, func(err error) bool { return errors.Is(err, elector.ErrLost) }},
				"a context that ends":  {inTheMiddle, h, func(opened) error { end(); return nil }, func(err error) bool { return errors.Is(err, context.Canceled) }},
				"an error that is ignored": {ctx, h, func(o opened) error { o.exec("select 1/0"); return nil }, func(err error) bool {
					return strings.Contains(err.Error(), "25P02") || strings.Contains(err.Error(), "aborted")
				}},
			} {
				err := attempt(c.ctx, c.h, what, c.then)
				if err == nil || !c.want(err) || errors.Is(err, backends.ErrStale) {
					t.Errorf("after %s: %v", what, err)
				}
			}
			if err := attempt(ctx, h, "ended itself", func(o opened) error { return o.end() }); err == nil {
				t.Error("a transaction that its work has ended counts as guarded")
			}
			l.acquires(name, renewed)
			if err := attempt(ctx, h, "stale", nothing); !errors.Is(err, backends.ErrStale) || !postgres.Refused(err) {
				t.Errorf("after another acquisition: %v", err)
			}
			var notes []string
			must(t, l.pool.QueryRow(ctx, "select array(select note from notes where election = $1 order by note)", name).Scan(&notes))
			if want := []string{"ended itself", "renewed", "written"}; !slices.Equal(notes, want) {
				t.Errorf("committed were %q, want %q", notes, want)
			}
			for left := -1; left != 0; {
				must(t, l.pool.QueryRow(ctx, "select count(*) from pg_sleep(0.01), pg_stat_activity where state like 'idle in transaction%'").Scan(&left))
			}
		})
	}
}

// Work that ends its transaction in SQL, which pgx does not see, is found out.
func TestPostgresTransactEnded(t *testing.T) {
	l := beside(t)
	h := believes(l.b, "ended", l.acquires("ended", backends.Record{}))
	for _, sql := range []string{"commit", "rollback"} {
		err := postgres.Transact(t.Context(), l.pool, h, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "without the guard") {
			t.Errorf("after %s: %v", sql, err)
		}
	}
}

// A takeover during a transaction is found at each isolation level, and a renewal
// disturbs none.
func TestPostgresGuardIsolation(t *testing.T) {
	l := beside(t)
	l.exec("create table notes ()")
	level := map[string]func(error) bool{
		"read committed":  func(err error) bool { return errors.Is(err, backends.ErrStale) },
		"repeatable read": func(err error) bool { return strings.Contains(err.Error(), "40001") },
		"serializable":    func(err error) bool { return strings.Contains(err.Error(), "40001") },
	}
	for name, want := range level {
		election := strings.ReplaceAll(name, " ", "-")
		r := l.acquires(election, backends.Record{})
		h := believes(l.b, election, r)
		during := func(event func()) error {
			return postgres.Transact(t.Context(), l.pool, h, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), "set transaction isolation level "+name+"; insert into notes default values")
				event()
				return err
			})
		}
		if err := during(func() { r = l.renews(election, r) }); err != nil {
			t.Errorf("%s: a renewal during the transaction: %v", name, err)
		}
		if err := during(func() { l.acquires(election, r) }); err == nil || !want(err) {
			t.Errorf("%s: a takeover during the transaction: %v", name, err)
		}
	}
}

// At each isolation level the guard of a transaction that began before renewals keeps
// an acquisition out, and lets renewals pass.
func TestPostgresGuardOldSnapshot(t *testing.T) {
	l := beside(t)
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		election := strings.ReplaceAll(level, " ", "-")
		r := l.acquires(election, backends.Record{})
		statement, err := postgres.Guard(believes(l.b, election, r))
		must(t, err)
		tx := l.holds("set transaction isolation level " + level + "; select from elector")
		for range 20 {
			r = l.renews(election, r)
		}
		_, err = tx.Exec(t.Context(), statement)
		must(t, err)
		r = l.renews(election, r)
		if _, err := l.b.Swap(t.Context(), election, r, following(r)); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "55P03") {
			t.Errorf("%s: an acquisition under the guard: %v", level, err)
		}
		must(t, tx.Commit(t.Context()))
		l.acquires(election, r)
	}
}

// While a guarded transaction is open, renewals and releases pass, and an
// acquisition is refused and certainly not applied.
func TestPostgresOpenGuard(t *testing.T) {
	l := beside(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	guarded := func(election string, r backends.Record) pgx.Tx {
		statement, err := postgres.Guard(believes(l.b, election, r))
		must(t, err)
		return l.holds(statement)
	}
	r, other := l.acquires("open", backends.Record{}), l.acquires("other", backends.Record{})
	guard, second := guarded("open", r), guarded("other", other)
	r = l.renews("open", r)
	renewals := []backends.Change{{Name: "open", Prev: r, Next: r}, {Name: "other", Prev: other, Next: other}}
	for i := range renewals {
		renewals[i].Next.Attempt.Sequence++
	}
	for _, o := range l.b.(backends.BatchSwapper).SwapMany(ctx, renewals) {
		must(t, o.Err)
	}
	r, err := l.b.Load(ctx, "open")
	must(t, err)
	vacant := r
	vacant.Holder = ""
	vacant.Attempt.Sequence++
	for range 2 {
		if _, err := l.b.Swap(ctx, "open", r, following(r)); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "55P03") {
			t.Fatalf("an acquisition under an open guard: %v", err)
		}
		got, err := l.b.Load(ctx, "open")
		if err != nil || got != r {
			t.Fatalf("after an acquisition was refused, Load returns %+v and error %v, want %+v", got, err, r)
		}
		if r.Holder != "" {
			r, err = l.b.Swap(ctx, "open", r, vacant)
			must(t, err)
		}
	}
	must(t, second.Commit(ctx))
	must(t, guard.Commit(ctx))
	l.acquires("open", r)
}

// A guard without a bound keeps a successor out, which tries again until the
// guarded transaction ends.
func TestPostgresGuardRepeated(t *testing.T) {
	l := beside(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := following(backends.Record{})
	r.TTL, r.RenewEvery = time.Second, 300*time.Millisecond
	r, err := l.b.Swap(ctx, "repeated", backends.Record{}, r)
	must(t, err)
	statement, err := postgres.Guard(believes(l.b, "repeated", r))
	must(t, err)
	guard := l.holds(statement + "; set local idle_in_transaction_session_timeout = 0")
	e, err := elector.Open(ctx, l.url, "repeated", &elector.Options{TTL: time.Second})
	must(t, err)
	defer e.Close()
	leads := make(chan error, 1)
	go func() {
		_, err := e.Campaign(ctx)
		leads <- err
	}()
	for range 2 {
		for l.waiting() == 0 && ctx.Err() == nil {
		}
		for l.waiting() > 0 && ctx.Err() == nil {
		}
	}
	must(t, ctx.Err())
	must(t, guard.Rollback(ctx))
	must(t, <-leads)
}

// Guards that cannot work say what to do.
func TestPostgresGuardRefuses(t *testing.T) {
	l := beside(t)
	ctx := t.Context()
	transact := func(pool *pgxpool.Pool, h backends.Lease) error {
		return postgres.Transact(ctx, pool, h, func(pgx.Tx) error { return nil })
	}
	wants := func(what string, err, kind error, texts ...string) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", what, err, kind)
			return
		}
		t.Logf("%s: %v", what, err)
		for _, text := range texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, which lacks %q", what, err, text)
			}
		}
	}
	r := l.acquires("refuses", backends.Record{})
	h := believes(l.b, "refuses", r)

	wants("another store", transact(l.pool, believes(memory.New(), "refuses", r)), backends.ErrMisconfigured, "refuses", "cannot guard a write to PostgreSQL")

	// A table from before there were guards.
	l.exec("create table former (like elector including defaults); alter table former add primary key (name)")
	former, err := backends.Open(ctx, l.url+"?table=former")
	must(t, err)
	fr, err := former.Swap(ctx, "refuses", backends.Record{}, following(backends.Record{}))
	must(t, err)
	err = transact(l.pool, believes(former, "refuses", fr))
	index := `create unique index concurrently on "public"."former" (name, token)`
	wants("a table without the index", err, backends.ErrMisconfigured, index, "restart")
	must(t, former.Close())
	l.exec(index)
	former, err = backends.Open(ctx, l.url+"?table=former")
	must(t, err)
	defer former.Close()
	must(t, transact(l.pool, believes(former, "refuses", fr)))

	// The rights of the data's role.
	l.exec("create role writer login; grant select on elector to writer")
	as := func(user, database string) *pgxpool.Pool {
		config := l.pool.Config()
		config.ConnConfig.User, config.ConnConfig.Database = user, database
		pool, err := pgxpool.NewWithConfig(ctx, config)
		must(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	writer := as("writer", "postgres")
	wants("a role that may only read", transact(writer, h), backends.ErrDenied, "update on one of its columns")
	l.exec("grant update (value) on elector to writer")
	must(t, transact(writer, h))

	// Another database.
	l.exec("create database elsewhere")
	elsewhere := as("postgres", "elsewhere")
	wants("a database without the table", transact(elsewhere, h), backends.ErrMisconfigured, `database of table "public"."elector"`)
	b, err := backends.Open(ctx, strings.TrimSuffix(l.url, "/postgres")+"/elsewhere?create=true")
	must(t, err)
	defer b.Close()
	wants("a database with another table", transact(elsewhere, h), backends.ErrStale, "database elsewhere has no record")
}
