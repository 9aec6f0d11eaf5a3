package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
)

func record(sequence uint64) backends.Record {
	return backends.Record{Holder: "h", Token: 7, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "N", Sequence: sequence}, Extensions: `{"k_a":"1"}`}
}

// A connection is used only if its server can serve.
func TestSettle(t *testing.T) {
	for name, test := range map[string]struct {
		is   map[string]string
		o    Options
		want error
		says string
	}{
		"a primary":                            {is: serving()},
		"a replica":                            {is: serving("read_only", "ON"), want: backends.ErrReadOnly, says: "primary's host"},
		"a replica with an unknown mode":       {is: serving("read_only", "NO_LOCK"), want: backends.ErrReadOnly, says: "primary's host"},
		"a reader":                             {is: serving("innodb_read_only", "ON"), want: backends.ErrReadOnly, says: "primary's host"},
		"a replica, to read alone":             {is: serving("read_only", "ON"), o: Options{ReadOnly: true}},
		"a node of Galera, to read alone":      {is: serving("wsrep_on", "ON"), o: Options{ReadOnly: true}},
		"autocommit off":                       {is: serving("autocommit", "OFF"), want: backends.ErrMisconfigured, says: "autocommit"},
		"a node of Galera":                     {is: serving("wsrep_on", "ON"), want: backends.ErrMisconfigured, says: "one_node=true"},
		"the one node of Galera":               {is: serving("wsrep_on", "ON"), o: Options{OneNode: true}},
		"several primaries":                    {is: serving("group_replication_group_name", "g", "group_replication_single_primary_mode", "OFF"), want: backends.ErrMisconfigured, says: "one_node=true"},
		"several primaries, of which one used": {is: serving("group_replication_group_name", "g", "group_replication_single_primary_mode", "OFF"), o: Options{OneNode: true}},
		"one primary of a group":               {is: serving("group_replication_group_name", "g", "group_replication_single_primary_mode", "ON")},
		"no group":                             {is: serving("group_replication_group_name", "", "group_replication_single_primary_mode", "OFF")},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{variables: test.is, row: absent()}
			b := f.backend(t, test.o)
			_, err := b.Load(t.Context(), "a")
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.says)
			}
			if !slices.Equal(f.settled, session) {
				t.Errorf("the session was set with %q, want %q", f.settled, session)
			}
			if err != nil && len(f.asked) > 0 {
				t.Errorf("a server that cannot serve was asked %q", f.asked)
			}
		})
	}
}

// The first server that takes writes is used.
func TestHosts(t *testing.T) {
	replica, primary := &fake{variables: serving("read_only", "ON")}, &fake{variables: serving(), row: absent()}
	b := replica.backend(t, Options{})
	b.db.Close()
	c := newConnector(b, replica, primary)
	defer c.Close()
	conn, err := c.Connect(t.Context())
	if err != nil || replica.connected != 1 || primary.connected != 1 {
		t.Fatalf("connected to %d and %d servers, %v", replica.connected, primary.connected, err)
	}
	conn.Close()
	primary.variables = serving("read_only", "ON")
	if _, err := c.Connect(t.Context()); !errors.Is(err, backends.ErrReadOnly) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want ErrReadOnly in one line", err)
	}
}

// The read itself detects a server that takes no writes, which a proxy may have sent
// it to.
func TestReadOfReplica(t *testing.T) {
	for column, name := range []string{"read_only", "innodb_read_only"} {
		f := &fake{variables: serving(), row: absent()}
		f.row[column] = []byte("1")
		if _, err := f.backend(t, Options{}).Load(t.Context(), "a"); !errors.Is(err, backends.ErrReadOnly) {
			t.Errorf("%s: got %v, want ErrReadOnly", name, err)
		}
	}
}

// A server that takes no writes any more costs its connection: the next one looks at all
// servers again.
func TestReadOnlyCostsTheConnection(t *testing.T) {
	f := &fake{variables: serving(), row: absent()}
	b := f.backend(t, Options{})
	load := func(want error, connected int) {
		t.Helper()
		if _, err := b.Load(t.Context(), "a"); !errors.Is(err, want) || f.connected != connected {
			t.Errorf("after %d connections, not %d: %v, want %v", f.connected, connected, err, want)
		}
	}
	load(nil, 1)
	load(nil, 1)
	f.row[0] = []byte("1")
	load(backends.ErrReadOnly, 1)
	f.row[0] = int64(0)
	load(nil, 2)
	f.fails = []error{&gomysql.MySQLError{Number: 1290}}
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record(1)); !errors.Is(err, backends.ErrReadOnly) {
		t.Error(err)
	}
	load(nil, 3)
}

// The comparison names every field, and extensions.
func TestWholeRow(t *testing.T) {
	f := &fake{variables: serving(), matched: 1}
	b := f.backend(t, Options{})
	prev := versioned("a", record(1))
	next, err := b.Swap(t.Context(), "a", prev, record(2))
	if err != nil || next != versioned("a", record(2)) {
		t.Fatalf("Swap returns %+v, %v", next, err)
	}
	_, where, _ := strings.Cut(f.asked[0], " where ")
	if want := "name = ? and `schema` = ? and holder = ? and token = ? and ttl = ? and renew_every = ? and attempt = ? and value = ? and ext = ?"; where != want {
		t.Errorf("it compares %s", where)
	}
	if !strings.HasPrefix(f.asked[0], "update `db`.`elector` set ") || len(f.with[0]) != 17 {
		t.Errorf("%d values in %s", len(f.with[0]), f.asked[0])
	}
	f.matched = 0
	if _, err := b.Swap(t.Context(), "a", prev, record(2)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("no row was matched: %v", err)
	}
	f.fails = []error{&gomysql.MySQLError{Number: 1062}}
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record(1)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("a row exists: %v", err)
	}
	if _, err := b.Swap(t.Context(), "b", prev, record(2)); !errors.Is(err, backends.ErrConflict) || len(f.asked) != 3 {
		t.Errorf("another election's version: %v, and %q", err, f.asked)
	}
}

// A statement is sent again only if nothing of it was sent.
func TestNothingIsSentTwice(t *testing.T) {
	f := &fake{variables: serving(), matched: 1, fails: []error{driver.ErrBadConn, driver.ErrBadConn}}
	b := f.backend(t, Options{})
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record(1)); err != nil || len(f.asked) != 3 {
		t.Errorf("two dead connections: %v after %d statements", err, len(f.asked))
	}
	for _, lost := range []error{gomysql.ErrInvalidConn, &gomysql.MySQLError{Number: 1213}, &gomysql.MySQLError{Number: 1205}, context.DeadlineExceeded} {
		f.asked, f.fails = nil, []error{lost}
		if _, err := b.Swap(t.Context(), "a", backends.Record{}, record(1)); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrConflict) || len(f.asked) != 1 {
			t.Errorf("%v: %v after %d statements", lost, err, len(f.asked))
		}
	}
	f.asked, f.fails = nil, slices.Repeat([]error{driver.ErrBadConn}, 20)
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record(1)); !errors.Is(err, backends.ErrUnavailable) || len(f.asked) != maxConns+1 {
		t.Errorf("many dead connections: %v after %d statements", err, len(f.asked))
	}
}

// A write that no replica may have is not acknowledged, and not read either.
func TestSemiSync(t *testing.T) {
	for _, variable := range []string{"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"} {
		f := &fake{variables: serving(variable, "ON"), status: "ON", matched: 1, row: absent()}
		both := func(b *Backend) (swap, load error) {
			_, swap = b.Swap(t.Context(), "a", backends.Record{}, record(1))
			_, load = b.Load(t.Context(), "a")
			return swap, load
		}
		if swap, load := both(f.backend(t, Options{})); swap != nil || load != nil {
			t.Errorf("%s, a replica answers: %v, %v", variable, swap, load)
		}
		f.status = "OFF"
		for _, err := range []error{first(both(f.backend(t, Options{}))), second(both(f.backend(t, Options{})))} {
			if !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "unknown whether") {
				t.Errorf("%s, fallen back: %v", variable, err)
			}
		}
		if swap, load := both(f.backend(t, Options{AllowAsync: true})); swap != nil || load != nil {
			t.Errorf("%s, fallen back, and that is allowed: %v, %v", variable, swap, load)
		}
		f.asked, f.status = nil, "lost"
		if _, err := f.backend(t, Options{}).Swap(t.Context(), "a", backends.Record{}, record(1)); !errors.Is(err, backends.ErrUnavailable) || len(f.asked) != 1 {
			t.Errorf("%s, the connection was lost after the write: %v, and %q", variable, err, f.asked)
		}
	}
}

func first(a, _ error) error  { return a }
func second(_, b error) error { return b }

// The terms of one election fall, so that none is inserted into the gap before the
// entry of the election behind it; renewals leave them as they are.
func TestTerm(t *testing.T) {
	last, r := "~", record(1)
	for range 5 {
		if now := term(r); now >= last {
			t.Errorf("after %s comes %s", last, now)
		} else {
			last = now
		}
		r.Attempt.Sequence++
		r.Value += "x"
		if term(r) != last {
			t.Errorf("a renewal of %s has %s", last, term(r))
		}
		r.Holder = ""
		if now := term(r); now >= last {
			t.Errorf("a release after %s has %s", last, now)
		} else {
			last = now
		}
		r.Holder, r.Attempt, r.Token = "h", backends.Attempt{Nonce: "~" + r.Attempt.Nonce, Sequence: 1}, r.Token+1
	}
	r.Token = backends.MaxToken
	if other := r; term(r) >= last || len(term(r)) > 128 {
		t.Errorf("%s of %+v", term(r), other)
	}
	other := r
	other.Attempt.Nonce = "other"
	if term(other) == term(r) {
		t.Error("two acquisitions with one token have one term")
	}
}
