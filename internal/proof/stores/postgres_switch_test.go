package stores

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// After a switchover the old primary lives on, and takes no writes: the backend finds the new
// one among the hosts of its URL.
func TestPostgresSwitchover(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := StartLocal(ctx, Postgres)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	other, err := PostgresStandby(ctx, s)
	must(t, err)
	t.Cleanup(func() { must(t, other.Stop()) })
	b, err := backends.Open(ctx, strings.Replace(s.URL, s.Address, s.Address+","+other.Address, 1))
	must(t, err)
	t.Cleanup(func() { b.Close() })
	r := backends.Record{Holder: "holder", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "nonce", Sequence: 1}}
	r, err = b.Swap(ctx, "switched", backends.Record{}, r)
	must(t, err)

	first, err := postgresConnect(ctx, s.Address, postgresAdmin)
	must(t, err)
	defer first.Close(context.Background())
	second, err := postgresConnect(ctx, other.Address, postgresAdmin)
	must(t, err)
	defer second.Close(context.Background())
	var end string
	for _, sql := range []string{"alter system set default_transaction_read_only = on", "select pg_reload_conf()"} {
		_, err := first.Exec(ctx, sql)
		must(t, err)
	}
	must(t, first.QueryRow(ctx, "select pg_current_wal_lsn()::text").Scan(&end))
	for there := false; !there; {
		must(t, second.QueryRow(ctx, "select pg_last_wal_replay_lsn() >= $1::pg_lsn", end).Scan(&there))
	}
	var promoted bool
	must(t, second.QueryRow(ctx, "select pg_promote()").Scan(&promoted))
	if !promoted {
		t.Fatal("the standby was not promoted")
	}

	next := r
	next.Attempt.Sequence++
	for {
		if _, err = b.Swap(ctx, "switched", r, next); err == nil || errors.Is(err, backends.ErrConflict) { // with a try before
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		if !errors.Is(err, backends.ErrReadOnly) {
			t.Log(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	var attempts int
	must(t, second.QueryRow(ctx, "select count(*) from elector where name = 'switched' and attempt like '%2%'").Scan(&attempts))
	if attempts != 1 {
		t.Error("the new primary does not have the write")
	}
}
