package stores

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
)

// A server that waits for a standby which is not there holds a commit back, and
// shows it as soon as the wait is broken off: no caller may believe it then, above
// all not one that has given up a renewal that others still wait for.
func TestPostgresStandby(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := StartLocal(ctx, Postgres)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	pool, err := pgxpool.New(ctx, s.URL)
	must(t, err)
	t.Cleanup(pool.Close)
	// waiting counts the sessions that wait for something, and returns one.
	waiting := func(what string) (sessions, pid int) {
		t.Helper()
		must(t, pool.QueryRow(ctx, `select count(*), coalesce(max(pid), 0) from pg_sleep(0.01), pg_stat_activity
			where pid <> pg_backend_pid() and $1 in (wait_event, wait_event_type)`, what).Scan(&sessions, &pid))
		return sessions, pid
	}
	waits := func(what string, sessions int) int {
		t.Helper()
		for {
			if n, pid := waiting(what); n == sessions {
				return pid
			}
		}
	}
	standby := func(name string) {
		t.Helper()
		_, err := pool.Exec(ctx, "alter system set synchronous_standby_names = '"+name+"'")
		must(t, err)
		_, err = pool.Exec(ctx, "select pg_reload_conf()")
		must(t, err)
	}
	breakOff := func() {
		t.Helper()
		_, err := pool.Exec(ctx, "select pg_cancel_backend($1)", waits("SyncRep", 1))
		must(t, err)
	}

	b, err := backends.Open(ctx, s.URL)
	must(t, err)
	t.Cleanup(func() { b.Close() })
	var renewals []backends.Change
	for _, name := range []string{"a", "b"} {
		r := backends.Record{Holder: "holder", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "nonce-" + name, Sequence: 1}}
		r, err := b.Swap(ctx, name, backends.Record{}, r)
		must(t, err)
		next := r
		next.Attempt.Sequence++
		renewals = append(renewals, backends.Change{Name: name, Prev: r, Next: next})
	}
	standby("nobody")
	// The server takes note in its own time: until then a commit does not wait.
	noted, stop := context.WithCancel(ctx)
	probed := make(chan error, 1)
	go func() {
		for {
			if _, err := pool.Exec(noted, "create table if not exists probe (); comment on table probe is 'x'"); err != nil {
				probed <- err
				return
			}
		}
	}()
	waits("SyncRep", 1)
	stop()
	<-probed
	waits("SyncRep", 0)

	renewed := make(chan []backends.Outcome, 1)
	go func() { renewed <- b.(backends.BatchSwapper).SwapMany(ctx, renewals) }()
	waits("SyncRep", 1)
	// Who reads locks the row, as long as the outcome is unknown. It may see what
	// was there before, for no reader has seen more.
	type answer struct {
		r   backends.Record
		err error
	}
	read := make(chan answer, 1)
	go func() {
		for {
			r, err := b.Load(ctx, "a")
			if r != renewals[0].Prev && (err == nil || !strings.Contains(err.Error(), "pg_locks")) {
				read <- answer{r, err}
				return
			}
		}
	}()
	for n := 0; n != 1; n, _ = waiting("Lock") {
		select {
		case a := <-read:
			t.Fatalf("while the outcome of a renewal is unknown a read has shown %+v, error %v", a.r, a.err)
		default:
		}
	}
	breakOff()
	for i, o := range <-renewed {
		if o.Err == nil || errors.Is(o.Err, backends.ErrConflict) || errors.Is(o.Err, backends.ErrNotTried) {
			t.Errorf("outcome %d of a batch that no standby has: %v", i, o.Err)
		}
	}
	breakOff() // now it is the read that waits
	if a := <-read; a.err == nil {
		t.Errorf("a read has shown %+v, which no standby has", a.r)
	}

	for i, o := range b.(backends.BatchLoader).LoadMany(ctx, []string{"b", "c"}) {
		if doubtful := i == 0; doubtful != errors.Is(o.Err, backends.ErrNotTried) || o.Record.Exists() {
			t.Errorf("outcome %d of a read of many, of which the first is in doubt: %+v", i, o)
		}
	}

	standby("")
	waits("SyncRep", 0)
	r, err := b.Load(ctx, "a")
	must(t, err)
	if r.Attempt.Sequence != 2 {
		t.Errorf("the record is %+v", r)
	}
}
