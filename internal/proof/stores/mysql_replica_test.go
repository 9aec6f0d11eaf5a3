//go:build mysql

package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// mySQLBinary makes a server replicate, and serverID tells it from others.
func mySQLBinary(serverID string) []string {
	return []string{"--log-bin=binlog", "--server-id=" + serverID, "--sync-binlog=1"}
}

// A primary that waits for its replica, and one that has given up waiting.
func TestMySQLSemiSync(t *testing.T) {
	start := func(id string) *Store {
		s, err := startMySQLWith(t.Context(), quick, mySQLBinary(id)...)
		must(t, err)
		t.Cleanup(func() { must(t, s.Stop()) })
		return s
	}
	primary, replica := start("1"), start("2")
	must(t, opener(primary.URL)(t).Close()) // makes the table
	const patience = 2 * time.Second        // of the primary
	must(t, primary.MySQLExec(t.Context(), "set global rpl_semi_sync_master_wait_point = AFTER_SYNC",
		fmt.Sprintf("set global rpl_semi_sync_master_timeout = %d", patience.Milliseconds()), "set global rpl_semi_sync_master_enabled = 1"))
	host, port, err := net.SplitHostPort(primary.Address)
	must(t, err)
	must(t, replica.MySQLExec(t.Context(), "set global rpl_semi_sync_slave_enabled = 1",
		"drop database secured", "drop user tester", "drop database test", "create database test", "reset master",
		"change master to master_host = '"+host+"', master_port = "+port+", master_user = 'root', master_log_file = 'binlog.000001', master_log_pos = 4",
		"start slave"))
	soon := func(what func(ctx context.Context) error) {
		t.Helper()
		must(t, until(t.Context(), 10*time.Second, what))
	}
	var b backends.Backend
	soon(func(ctx context.Context) (err error) {
		b, err = backends.Open(ctx, primary.URL)
		return err
	})
	defer func() { must(t, b.Close()) }()

	// A write is acknowledged when the replica has it.
	r := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}}
	first, err := b.Swap(t.Context(), "a", backends.Record{}, r)
	must(t, err)
	db, err := sql.Open("mysql", replica.MySQLName())
	must(t, err)
	defer db.Close()
	soon(func(ctx context.Context) error {
		var attempt string
		err := db.QueryRowContext(ctx, "select attempt from elector where name = 'a'").Scan(&attempt)
		if err == nil && attempt != first.Attempt.String() {
			err = errors.New("the replica has " + attempt)
		}
		return err
	})

	// A replica that takes no writes is refused, and no process uses it.
	must(t, replica.MySQLExec(t.Context(), "set global read_only = 1"))
	if err := openError(t, replica.URL); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("opening a replica: %v", err)
	}
	both := opener(strings.Replace(primary.URL, primary.Address, replica.Address+","+primary.Address, 1))(t)
	if found, err := both.Load(t.Context(), "a"); err != nil || found.Attempt != first.Attempt {
		t.Errorf("of two hosts the primary is used: %+v, %v", found, err)
	}
	must(t, both.Close())

	// While the replica stands still, the outcome of a write is unknown if the caller
	// gives up. Others do not read it. It may be applied later.
	must(t, replica.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), patience/4)
	defer cancel()
	second := first
	second.Attempt.Sequence++
	if _, err := b.Swap(ctx, "a", first, second); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrConflict) {
		t.Errorf("a write that waits for the replica: %v", err)
	}
	if found, err := b.Load(t.Context(), "a"); err != nil || found.Attempt != first.Attempt {
		t.Errorf("others read %+v, %v", found, err)
	}
	must(t, replica.Continue())
	soon(func(ctx context.Context) (err error) {
		found, err := b.Load(ctx, "a")
		if second = found; err == nil && found.Attempt.Sequence != 2 {
			err = errors.New("the write was not applied")
		}
		return err
	})

	// When the primary gives up, it answers as if nothing were.
	must(t, replica.Pause())
	third := second
	third.Attempt.Sequence++
	_, err = b.Swap(t.Context(), "a", second, third)
	unknown := func(when string, err error) {
		t.Helper()
		if !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "fallen back to asynchronous") {
			t.Errorf("%s: %v", when, err)
		}
	}
	unknown("a write that no replica has", err)
	_, err = b.Load(t.Context(), "a")
	unknown("a read of it", err)
	careless := opener(primary.URL + "&allow_async=true")(t)
	if found, err := careless.Load(t.Context(), "a"); err != nil || found.Attempt != third.Attempt {
		t.Errorf("a read that takes what no replica has: %+v, %v", found, err)
	}
	must(t, careless.Close())
	must(t, replica.Continue())
	soon(func(ctx context.Context) error {
		found, err := b.Load(ctx, "a")
		if err == nil && found.Attempt != third.Attempt {
			t.Errorf("when the replica has everything: %+v", found)
		}
		return err
	})
}
