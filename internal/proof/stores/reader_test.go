package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// readsOnly checks two roles, each with the least rights of its kind: all calls of a
// candidate and of a reader succeed, and the store refuses the reader a write. And what does
// not exist is said, in a store that has such a thing: missingURL may be empty.
func readsOnly(t *testing.T, candidateURL, readerURL, missingURL string) {
	t.Helper()
	for call, err := range candidateCalls(t, candidateURL) {
		if err != nil {
			t.Errorf("a candidate's %s: %v", call, err)
		}
	}
	leadOnce(t, candidateURL)
	before := elections(t, candidateURL)
	for call, err := range readerCalls(t, readerURL) {
		if err != nil {
			t.Errorf("a reader's %s: %v", call, err)
		}
	}
	observes(t, candidateURL, readerURL)
	denied := refusedBy(t, readerURL)
	if after := elections(t, candidateURL); !slices.Equal(before, after) {
		t.Errorf("before the reader there are the elections %q, and after it %q", before, after)
	}
	if !errors.Is(denied, backends.ErrDenied) && !errors.Is(denied, backends.ErrReadOnly) {
		t.Errorf("a write of the reader's role: %v", denied)
	}
	if missingURL == "" {
		return
	}
	if b, err := backends.OpenReadOnly(t.Context(), missingURL); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "no election has ever used it") {
		if b != nil {
			b.Close()
		}
		t.Errorf("what does not exist: %v", err)
	}
}

// elections returns their names.
func elections(t *testing.T, storeURL string) []string {
	t.Helper()
	b := opener(storeURL)(t)
	defer b.Close()
	names, err := b.(backends.Lister).List(t.Context())
	must(t, err)
	return names
}

// observes checks that a reader observes the next leader of readElection, and that it
// resigns.
func observes(t *testing.T, candidateURL, readerURL string) {
	t.Helper()
	candidate, err := elector.Open(t.Context(), candidateURL, readElection, &elector.Options{ID: "next"})
	must(t, err)
	defer candidate.Close()
	var lease *elector.Lease
	observe(t, readerURL, func() elector.Token {
		lease, err = candidate.TryCampaign(t.Context())
		must(t, err)
		return lease.Token()
	}, func() { must(t, lease.Release(t.Context())) })
}

// observe observes the leader that lead makes, until it has resigned.
func observe(t *testing.T, readerURL string, lead func() elector.Token, resign func()) {
	t.Helper()
	b, err := backends.OpenReadOnly(t.Context(), readerURL)
	must(t, err)
	defer b.Close()
	reader, err := elector.New(b, readElection, &elector.Options{ID: "reader"})
	must(t, err)
	defer reader.Close()
	var token elector.Token
	for l, err := range reader.Observe(t.Context()) {
		must(t, err)
		switch {
		case token == 0:
			token = lead()
		case l.Token == token && !l.Vacant():
			resign()
		case l.Token == token:
			return
		}
	}
}

// refusedBy returns the error of a write, or of an Open that is to write.
func refusedBy(t *testing.T, storeURL string) error {
	t.Helper()
	b, err := backends.Open(t.Context(), storeURL)
	if err != nil {
		return err
	}
	defer b.Close()
	r := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}}
	_, err = b.Swap(t.Context(), "another", backends.Record{}, r)
	return err
}

// The right to select is enough on PostgreSQL, and a hot standby will do.
func TestPostgresReader(t *testing.T) {
	s := begin(t, Postgres)
	admin, err := pgx.Connect(t.Context(), s.URL)
	must(t, err)
	defer admin.Close(context.Background())
	for _, sql := range []string{
		"create role app login", "grant select, insert, update on elector to app",
		"create role looks login", "grant select on elector to looks", "create database other",
		"create role looks_safely login", "alter role looks_safely set default_transaction_read_only = on", "grant select on elector to looks_safely",
	} {
		_, err := admin.Exec(t.Context(), sql)
		must(t, err)
	}
	candidate := strings.Replace(s.URL, postgresAdmin+"@", "app@", 1)
	reader := strings.Replace(s.URL, postgresAdmin+"@", "looks@", 1)
	u, err := url.Parse(reader)
	must(t, err)
	u.Path = "/other"
	readsOnly(t, candidate, reader, u.String())
	for call, err := range readerCalls(t, strings.Replace(reader, "looks@", "looks_safely@", 1)) {
		if err != nil {
			t.Errorf("with default_transaction_read_only, %s: %v", call, err)
		}
	}
	// Open asks the server for the rights. The server also refuses the statements.
	conn, err := pgx.Connect(t.Context(), reader)
	must(t, err)
	defer conn.Close(context.Background())
	for _, sql := range []string{
		"insert into elector values ('another', 1, 'h', 1, 15000000000, 4000000000, 'N.1', '')", "update elector set holder = 'h'", "delete from elector",
		"select * from elector for key share", "create table public.typo ()",
	} {
		var refused *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql); !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	left, err := pgx.Connect(t.Context(), u.String())
	must(t, err)
	defer left.Close(context.Background())
	var tables int
	must(t, left.QueryRow(t.Context(), "select count(*) from pg_class where relname = 'elector'").Scan(&tables))
	if tables != 0 {
		t.Error("a reader has made a table")
	}
	nowhere := *u // a database that has the user's name is meant
	nowhere.Path = ""
	if _, err := backends.OpenReadOnly(t.Context(), nowhere.String()); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), `there is no database "looks"`) || !strings.Contains(err.Error(), "user's name if the URL names none") {
		t.Errorf("a URL without a database: %v", err)
	}
	for _, sql := range []string{"create schema closed", "create table closed.hidden (like elector)", "grant select on closed.hidden to looks"} {
		_, err = admin.Exec(t.Context(), sql)
		must(t, err)
	}
	for table, says := range map[string]string{"closed.hidden": `grant usage on schema "closed" to "looks"`, "hidden&search_path=closed": "needs usage on it"} {
		if _, err := backends.OpenReadOnly(t.Context(), reader+"?table="+table); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a table in a schema that the role may not use, table=%s: %v", table, err)
		}
	}
	_, err = admin.Exec(t.Context(), "revoke select on elector from looks")
	must(t, err)
	if _, err := backends.OpenReadOnly(t.Context(), reader); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), `grant select on "public"."elector" to "looks"`) {
		t.Errorf("a role without a right: %v", err)
	}
	_, err = admin.Exec(t.Context(), "grant select on elector to looks")
	must(t, err)

	standby, err := PostgresStandby(t.Context(), s)
	must(t, err)
	defer func() { must(t, standby.Stop()) }()
	looks := strings.Replace(reader, s.Address, standby.Address, 1)
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	must(t, until(ctx, readyWithin, func(ctx context.Context) error { // it has replayed the grant
		b, err := backends.OpenReadOnly(ctx, looks)
		if err == nil {
			_, err = b.Load(ctx, readElection)
			b.Close()
		}
		return err
	}))
	for call, err := range readerCalls(t, looks) {
		if err != nil {
			t.Errorf("on a standby, %s: %v", call, err)
		}
	}
	observes(t, candidate, looks)
	both := strings.Replace(reader, s.Address, vacantAddress(t)+","+standby.Address+","+s.Address, 1)
	for _, attrs := range []string{"any", "standby", "primary", "prefer-standby"} {
		for call, err := range readerCalls(t, both+"?target_session_attrs="+attrs) {
			if err != nil {
				t.Errorf("with several hosts and target_session_attrs=%s, %s: %v", attrs, call, err)
			}
		}
	}
	if err := refusedBy(t, looks); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("a candidate on a standby: %v", err)
	}
}

// A user who may read the prefix is enough on etcd. What does not exist has no record.
func TestEtcdReader(t *testing.T) {
	s, err := EtcdWithAuth(t.Context(), "/elector/")
	must(t, err)
	defer func() { must(t, s.Stop()) }()
	admin, err := etcdClient(t.Context(), s.Address, s.Admin)
	must(t, err)
	defer admin.Close()
	looks := Login{"looks", rand.Text()}
	_, err = admin.UserAdd(t.Context(), looks.User, looks.Password)
	must(t, err)
	reader := looks.In(s.PasswordURL)
	if _, err := backends.OpenReadOnly(t.Context(), reader); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "--prefix=true read '/elector/'") {
		t.Errorf("a user without a right: %v", err)
	}
	_, err = admin.RoleAdd(t.Context(), looks.User)
	must(t, err)
	_, err = admin.UserGrantRole(t.Context(), looks.User, looks.User)
	must(t, err)
	_, err = admin.RoleGrantPermission(t.Context(), looks.User, "/elector/", clientv3.GetPrefixRangeEnd("/elector/"), clientv3.PermissionType(clientv3.PermRead))
	must(t, err)
	readsOnly(t, s.User.In(s.PasswordURL), reader, "")
}

// On ZooKeeper, readable=true lets anyone read what a candidate with a login creates.
func TestZooKeeperReader(t *testing.T) {
	s := begin(t, ZooKeeper)
	conn, _, err := zk.Connect([]string{s.Address}, 10*time.Second, zk.WithLogger(silence{}), zk.WithLogInfo(false))
	must(t, err)
	defer conn.Close()
	const prefix = "/readable"
	app := Login{"app", "app-password"}
	_, err = conn.Create(prefix, nil, 0, append(zk.DigestACL(zk.PermCreate|zk.PermRead, app.User, app.Password), zk.WorldACL(zk.PermRead)...))
	must(t, err)
	reader := s.URL + prefix
	readsOnly(t, app.In(s.URL+prefix)+"?readable=true", reader, s.URL+"/typo")
	for path, exists := range map[string]bool{prefix: true, "/typo": false} {
		if there, _, err := conn.Exists(path); err != nil || there != exists {
			t.Errorf("%s exists: %v, %v", path, there, err)
		}
	}
	secret := app.In(s.URL + "/secret")
	leadOnce(t, secret)
	if _, err := backends.OpenReadOnly(t.Context(), s.URL+"/secret"); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "readable=true") {
		t.Errorf("a reader of what is not readable: %v", err)
	}
}
