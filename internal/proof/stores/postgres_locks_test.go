package stores

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
)

// lockedRows is a PostgreSQL with other transactions beside the backend's.
type lockedRows struct {
	*testing.T
	url  string
	pool *pgxpool.Pool
	b    backends.Backend
}

func beside(t *testing.T) lockedRows { return besideOn(t, begin(t, Postgres)) }

func besideOn(t *testing.T, s *Store) lockedRows {
	pool, err := pgxpool.New(context.Background(), s.URL)
	must(t, err)
	t.Cleanup(pool.Close)
	b, err := backends.Open(t.Context(), s.URL)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return lockedRows{t, s.URL, pool, b}
}

// holds begins a transaction that stays open after a statement.
func (l lockedRows) holds(sql string, args ...any) pgx.Tx {
	l.Helper()
	tx, err := l.pool.Begin(context.Background())
	must(l, err)
	l.Cleanup(func() { tx.Rollback(context.Background()) })
	_, err = tx.Exec(l.Context(), sql, args...)
	must(l, err)
	return tx
}

// waiting counts those who wait for a lock.
func (l lockedRows) waiting() (n int) {
	must(l, l.pool.QueryRow(l.Context(), "select count(*) from pg_sleep(0.01), pg_locks where not granted").Scan(&n))
	return n
}

func (l lockedRows) exec(sql string, args ...any) {
	l.Helper()
	_, err := l.pool.Exec(l.Context(), sql, args...)
	must(l, err)
}

// Writes that wait for locked rows do not keep the connections from a batch that
// waits for none.
func TestPostgresLockedBatch(t *testing.T) {
	l := beside(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var renewals []backends.Change
	for i := range 40 {
		r := backends.Record{Holder: "holder", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: fmt.Sprint("nonce-", i), Sequence: 1}}
		r, err := l.b.Swap(ctx, fmt.Sprint("batch-", i), backends.Record{}, r)
		must(t, err)
		next := r
		next.Attempt.Sequence++
		renewals = append(renewals, backends.Change{Name: fmt.Sprint("batch-", i), Prev: r, Next: next})
	}
	open := l.holds("select from elector where split_part(name, '-', 2)::int < 30 for update")
	var writes sync.WaitGroup
	for _, r := range renewals[:30] {
		writes.Go(func() {
			if _, err := l.b.Swap(ctx, r.Name, r.Prev, r.Next); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "pg_locks") {
				t.Errorf("a Swap over a locked row returns %v", err)
			}
		})
	}
	for l.waiting() == 0 {
	}
	for i, o := range l.b.(backends.BatchSwapper).SwapMany(ctx, renewals) {
		if locked := i < 30; locked != errors.Is(o.Err, backends.ErrNotTried) || !locked && o.Err != nil {
			t.Errorf("of 40 renewals, of which 30 are of locked rows, outcome %d is %v", i, o.Err)
		}
	}
	writes.Wait()
	for _, r := range renewals[:30] {
		if got, err := l.b.Load(ctx, r.Name); err != nil || got != r.Prev {
			t.Errorf("a row that was passed over is read as %+v and error %v, want %+v", got, err, r.Prev)
		}
	}
	must(t, open.Rollback(ctx))
}

// A write that waits for a locked row is refused at once, and certainly not
// applied: who reads then does not wait for the lock.
func TestPostgresLockedWrite(t *testing.T) {
	l := beside(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	refused := func(name string, prev, next backends.Record) {
		t.Helper()
		r, err := l.b.Swap(ctx, name, prev, next)
		if !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrConflict) || !strings.Contains(err.Error(), "pg_locks") {
			t.Fatalf("a Swap over a locked row returns %+v and error %v", r, err)
		}
		if got, err := l.b.Load(ctx, name); err != nil || got != prev {
			t.Fatalf("while a row is locked a Load returns %+v and error %v, want %+v", got, err, prev)
		}
	}
	next := backends.Record{Holder: "holder", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "nonce", Sequence: 1}}

	creating := l.holds("insert into elector values ('locked', 1, 'somebody', 1, 15000000000, 4500000000, 'other.1', '')")
	refused("locked", backends.Record{}, next)
	must(t, creating.Rollback(ctx))
	r, err := l.b.Swap(ctx, "locked", backends.Record{}, next)
	must(t, err)

	next.Attempt.Sequence++
	updating := l.holds("update elector set attempt = 'other.1' where name = 'locked'")
	refused("locked", r, next)
	must(t, updating.Commit(ctx))
	if _, err := l.b.Swap(ctx, "locked", r, next); !errors.Is(err, backends.ErrConflict) {
		t.Fatalf("after a row was changed a Swap returns %v", err)
	}
}

// While it is unknown whether a write was applied, a read locks the row. If
// another transaction has locked it, what the write was to replace is the truth as
// long as it is there, and nothing else is.
func TestPostgresLockedRead(t *testing.T) {
	l := beside(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := backends.Record{Holder: "holder", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "nonce", Sequence: 1}}
	r, err := l.b.Swap(ctx, "doubt", backends.Record{}, next)
	must(t, err)

	// A table that is locked lets no statement begin, so that none is told to
	// wait no longer.
	locked := l.holds("lock table elector in access exclusive mode")
	writing, giveUp := context.WithCancel(ctx)
	defer giveUp()
	unknown := make(chan error, 1)
	next.Attempt.Sequence++
	go func() {
		_, err := l.b.Swap(writing, "doubt", r, next)
		unknown <- err
	}()
	for l.waiting() == 0 {
	}
	giveUp()
	if err := <-unknown; err == nil {
		t.Fatal("a Swap without an answer succeeds")
	}
	for l.waiting() > 0 {
	}
	must(t, locked.Rollback(ctx))

	row := l.holds("select from elector where name = 'doubt' for update")
	if got, err := l.b.Load(ctx, "doubt"); err != nil || got != r {
		t.Errorf("what an unknown write was to replace is there, in a locked row: Load returns %+v and error %v, want %+v", got, err, r)
	}
	must(t, row.Rollback(ctx))

	l.exec("update elector set attempt = 'other.1' where name = 'doubt'")
	row = l.holds("select from elector where name = 'doubt' for update")
	if got, err := l.b.Load(ctx, "doubt"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "pg_locks") {
		t.Errorf("another state than an unknown write was to replace is there, in a locked row: Load returns %+v and error %v", got, err)
	}
	must(t, row.Rollback(ctx))
	guard := l.holds("select from elector where name = 'doubt' for key share")
	got, err := l.b.Load(ctx, "doubt")
	must(t, err)
	must(t, guard.Rollback(ctx))
	row = l.holds("select from elector where name = 'doubt' for update")
	if again, err := l.b.Load(ctx, "doubt"); err != nil || again != got {
		t.Errorf("once the doubt is over a locked row is read like any other: %+v and error %v, want %+v", again, err, got)
	}
	must(t, row.Rollback(ctx))
}

// Commits that notify go one after the other, and each waits for the disk. A change waits for
// its turn as long as its request has time.
func TestPostgresManyNotify(t *testing.T) {
	s, err := startPostgres(t.Context(), durable) // others have no commit_delay
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	l := besideOn(t, s)
	l.exec("create table others as select id, 0 as n from generate_series(1, 6) as id")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 6 {
		conn, err := pgx.Connect(ctx, l.url)
		must(t, err)
		all.Go(func() {
			defer conn.Close(context.Background())
			_, err := conn.Exec(ctx, "set commit_delay = 100000; set commit_siblings = 0")
			for err == nil {
				_, err = conn.Exec(ctx, "update others set n = n + 1 from (select pg_notify('others', '')) as sent where id = $1", i+1)
			}
			if ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	for l.waiting() < 5 {
	}
	change := func(name string) backends.Record {
		return backends.Record{Holder: "holder", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: name, Sequence: 1}}
	}
	within, done := context.WithTimeout(ctx, 20*time.Second)
	defer done()
	if _, err := l.b.Swap(within, "one", backends.Record{}, change("one")); err != nil {
		t.Error(err)
	}
	many := []backends.Change{{Name: "two", Next: change("two")}, {Name: "three", Next: change("three")}}
	for _, o := range l.b.(backends.BatchSwapper).SwapMany(within, many) {
		if o.Err != nil {
			t.Error(o.Err)
		}
	}
	cancel()
	all.Wait()
}
